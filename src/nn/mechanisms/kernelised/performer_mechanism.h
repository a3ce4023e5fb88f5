// Performer (Choromanski et al. 2021): softmax's kernel estimated by positive orthogonal random features (FAVOR+).
#pragma once

#include "nn/mechanisms/kernelised/random_features.h"
#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class PerformerMechanism : public Mechanism {
 public:
  PerformerMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& key_mask) override {
    return forward(q, k, v, key_mask);
  }
  // Sums over keys of features times values and of features, and the logarithm of what these are to be multiplied with.
  MechanismState empty_state(std::int64_t batch, const at::TensorOptions& like) const override;
  at::Tensor forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, MechanismState& state,
                            const StreamClock& clock) override;

  at::Tensor projection;  // [H, M, D], a buffer

 private:
  AttentionConfig config_;
  AttentionShape shape_;
  at::Tensor forwards_;  // a buffer: training forwards so far
  RedrawSchedule schedule_;
};

}  // namespace cosformer::nn
