// Linformer (Wang et al. 2020): keys and values projected over length to a fixed number, then softmax.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class LinformerMechanism : public Mechanism {
 public:
  LinformerMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  at::Tensor length_proj;  // [rank, max_length], a parameter: of keys and values, of all heads

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
