// Softmax attention that does sparse work: each block of queries against the blocks of keys that its list names, and
// nothing else. Time and memory follow the lists' lengths. Scores live in chunks of bounded size and are made again in
// the backward pass, so what is kept grows with the number of tokens only.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "nn/mechanisms/sparse/block_pattern.h"

namespace cosformer::nn {

struct PartialAttention {
  at::Tensor out;  // [B, H, Tq, Dv]; 0 for a query that sees nothing
  at::Tensor lse;  // [B, H, Tq], float32 or float64: ln Σ exp(score); −∞ for a query that sees nothing
};

// q [B, H, Tq, D], k [B, H, Tk, D], v [B, H, Tk, Dv], strides free. Scores are q·k/√D; softmax is taken in float32 or
// above. Differentiable in q, k, v once, through both results. Nothing waits for the device.
PartialAttention block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const BlockPattern& pattern);

// For layouts and masks of the mechanisms' interface: q, k, v [B, T, H, D], key_mask [B, T] or undefined → [B, T, H,
// D]. Sets the pattern's key_present.
at::Tensor attend_in_blocks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask,
                            BlockPattern pattern);

// Every query against every key; for the few queries that see all. Same layouts; q may have fewer tokens.
at::Tensor attend_to_all(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask);

// What softmax over disjoint sets of keys together gives, from what it gives over each.
at::Tensor merge(const std::vector<PartialAttention>& parts);

// [B, T] of the mechanisms' interface as [B·heads, T]; undefined stays so.
at::Tensor mask_per_head(const at::Tensor& key_mask, std::int64_t heads);

}  // namespace cosformer::nn
