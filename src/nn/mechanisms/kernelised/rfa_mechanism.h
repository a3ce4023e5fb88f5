// Random feature attention (Peng et al. 2021): Gaussian or arc-cosine features of normalised queries and keys, and for
// causal models a gate that forgets.
#pragma once

#include <torch/nn/modules/linear.h>

#include "nn/mechanisms/kernelised/random_features.h"
#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class RfaMechanism : public Mechanism {
 public:
  RfaMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& key_mask) override {
    return forward(q, k, v, key_mask);
  }
  at::Tensor forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& key_mask) override;

  at::Tensor directions;                 // [H, M, D], a buffer
  at::Tensor sigma;                      // [H · D], a parameter: deviation of the directions in each dimension
  torch::nn::Linear gate_proj{nullptr};  // of the block's input, a number per head; with the gated variants

 private:
  at::Tensor features(const at::Tensor& x, const at::Tensor& scaled_directions) const;

  AttentionConfig config_;
  AttentionShape shape_;
  bool arc_cosine_, gated_;
  at::Tensor forwards_;  // a buffer: training forwards so far
  RedrawSchedule schedule_;
};

}  // namespace cosformer::nn
