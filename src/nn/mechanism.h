// One interface for every attention mechanism: queries, keys and values of all heads in, outputs out.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "nn/attention_config.h"

namespace cosformer::nn {

// What the mechanism is for.
struct AttentionShape {
  std::int64_t heads = 1, dim = 64;
  std::int64_t max_length = 0;  // no sequence is longer
  bool causal = false;
};

class Mechanism : public torch::nn::Module {
 public:
  // q, k, v [B, T, H, D], time and head strides free; key_mask [B, T] bool, true = present, or undefined → [B, T, H, D]
  virtual at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& key_mask) = 0;
};

// Throws UserError for what require_possible() refuses.
std::shared_ptr<Mechanism> make_mechanism(const AttentionConfig& config, const AttentionShape& shape);

}  // namespace cosformer::nn
