// Attention weights from the one-vs-each bound (Titsias 2016) in place of softmax's normaliser.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

// Σ_{m visible} −log(1 + exp(s_m − s_j)) for each j of each row of scores [..., T]: the logarithm of the bound on
// softmax's weight of j, up to what is the same for all j of a row. `visible` is of the scores' shape, or undefined.
// Time grows with T² per row; memory beside the result is bounded. Differentiable in scores, once.
at::Tensor one_vs_each_log_bound(const at::Tensor& scores, const at::Tensor& visible);

class OneVsEachMechanism : public Mechanism {
 public:
  OneVsEachMechanism(const AttentionConfig& config, const AttentionShape& shape) : config_(config), shape_(shape) {}
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& key_mask) override {
    return forward(q, k, v, key_mask);
  }

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
