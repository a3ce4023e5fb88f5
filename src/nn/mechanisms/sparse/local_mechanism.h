// Attention within blocks of tokens, and to so many neighbouring blocks.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class LocalMechanism : public Mechanism {
 public:
  LocalMechanism(const AttentionConfig& config, const AttentionShape& shape) : config_(config), shape_(shape) {}
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
