// Sparse Sinkhorn attention (Tay et al.): a block sees itself and one block of keys and values that a learned,
// differentiable sorting brings to it.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class SinkhornMechanism : public Mechanism {
 public:
  SinkhornMechanism(const AttentionConfig& config, const AttentionShape& shape);
  // Sorts by the keys: for callers that have no input; width must be heads · dim, or 0.
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& key_mask) override;

  // The sorting network: ReLU(block's sum of x · in_weight + in_bias) · out_weight + out_bias, for each head.
  at::Tensor in_weight;   // [H, width, D]
  at::Tensor in_bias;     // [H · D]
  at::Tensor out_weight;  // [H, D, greatest number of blocks]
  at::Tensor out_bias;    // [H · greatest number of blocks]

 private:
  // [B, H, blocks, blocks], nearly doubly stochastic among blocks that are present, 1 on the others' diagonal.
  at::Tensor sorting(const at::Tensor& sums, const at::Tensor& block_present) const;

  AttentionConfig config_;
  AttentionShape shape_;
};

// Rows and columns of exp(logits) in turn divided by their sums, `iterations` times, as logarithms.
at::Tensor sinkhorn_balance(at::Tensor logits, std::int64_t iterations);

}  // namespace cosformer::nn
