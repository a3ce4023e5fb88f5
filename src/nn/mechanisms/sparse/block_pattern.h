// Which blocks of keys each block of queries sees, as data: what block_attention() works through.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// Makes −∞ of what a query must not see: scores [g, c, query_block, keys] in place, given what is known of the tokens,
// queries [g or 1, c, query_block, 1, K] and keys [g or 1, c, 1, keys, K].
using PairRule = std::function<void(at::Tensor& scores, const at::Tensor& queries, const at::Tensor& keys)>;

// G is batch · heads, heads running fastest.
struct BlockPattern {
  std::int64_t query_block = 0, key_block = 0;  // tokens in a block; lengths need not be multiples
  at::Tensor key_blocks;   // [1 or G, query blocks, L] int64: the blocks that a query block sees, each once; −1: none
  at::Tensor key_present;  // [1 or G, keys] bool; undefined: all
  at::Tensor query_tags, key_tags;  // [1 or G, tokens, K] int32 for `rule`; undefined: one tag, the token's position
  PairRule rule;                    // empty: a query sees all that is in its blocks
};

std::int64_t blocks_in(std::int64_t tokens, std::int64_t block);

// [1, blocks, before + 1 + after]: each block's own number between those of its neighbours.
at::Tensor neighbouring_blocks(std::int64_t blocks, std::int64_t before, std::int64_t after, c10::Device device);

// Lists [G, blocks, L] with the first `count` blocks put before, and taken out where they were listed already.
at::Tensor with_leading_blocks(const at::Tensor& lists, std::int64_t count);

// j ≤ i by the tokens' positions, which are tag 0.
PairRule earlier_only();

}  // namespace cosformer::nn
