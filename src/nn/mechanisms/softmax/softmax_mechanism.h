// Softmax attention by libtorch's best kernel: what everything else is compared with.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class SoftmaxMechanism : public Mechanism {
 public:
  SoftmaxMechanism(const AttentionConfig& config, const AttentionShape& shape) : config_(config), shape_(shape) {}
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& key_mask) override {
    return forward(q, k, v, key_mask);
  }
  at::Tensor forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Packing& packing) override;
  // Keys and values of all tokens so far, [B, H, room, D].
  MechanismState empty_state(std::int64_t batch, const at::TensorOptions& like) const override;
  at::Tensor forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, MechanismState& state,
                            const StreamClock& clock) override;

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
