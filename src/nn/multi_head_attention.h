// Self-attention of a Transformer block: projections, what is done around a mechanism, and the mechanism.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/nn/modules/linear.h>

#include "nn/mechanism.h"
#include "nn/short_convolution.h"
#include "nn/stochastic_positions.h"

namespace cosformer::nn {

struct MultiHeadConfig {
  std::int64_t width = 0;  // of the residual stream
  AttentionShape shape;
  bool bias = false;
  bool rotary = false;
  std::optional<StochasticPositionConfig> stochastic;  // with stochastic positions
};

class MultiHeadAttention : public torch::nn::Module {
 public:
  MultiHeadAttention(const MultiHeadConfig& config, const AttentionConfig& attention);

  // x [B, T, width]; mask [B, T] bool, true = present, or undefined. Absent tokens of x may hold anything finite.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask);

  // qkv_proj makes what the mechanism reads: queries, keys and values, or fewer.
  torch::nn::Linear qkv_proj{nullptr}, gate_proj{nullptr}, out_proj{nullptr};
  std::shared_ptr<ShortConvolution> convolution;
  std::shared_ptr<StochasticPositions> positions;
  std::shared_ptr<Mechanism> mechanism;
  at::Tensor head_norm_weight;  // [D]

 private:
  MultiHeadConfig config_;
  std::string projections_;  // of q, k and v, which there are
  at::Tensor rotary_table_;  // follows from the config, so it is not a weight
};

}  // namespace cosformer::nn
