// Self-attention of a Transformer block: projections, what is done around a mechanism, and the mechanism.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/nn/modules/linear.h>

#include "nn/mechanisms/mechanism.h"
#include "nn/positions/stochastic_positions.h"
#include "nn/short_convolution.h"

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

  // Of packed sequences. Throws UserError where the mechanism or the positions cannot.
  at::Tensor forward_packed(const at::Tensor& x, const Packing& packing);

  // Causal: the next tokens, after those that `state` remembers, which is advanced; `clock` stands before them. The
  // caller sees to it that there are no more than longest_stream(). Throws UserError where there are no streams.
  at::Tensor forward_stream(const at::Tensor& x, LayerState& state, const StreamClock& clock);
  LayerState empty_state(std::int64_t batch) const;
  std::optional<std::int64_t> longest_stream() const;

  // qkv_proj makes what the mechanism reads: queries, keys and values, or fewer.
  torch::nn::Linear qkv_proj{nullptr}, gate_proj{nullptr}, out_proj{nullptr};
  std::shared_ptr<ShortConvolution> convolution;
  std::shared_ptr<StochasticPositions> positions;
  std::shared_ptr<Mechanism> mechanism;
  at::Tensor head_norm_weight;  // [D]

 private:
  struct Heads {
    at::Tensor q, k, v;  // [B, T, H, D]
  };
  Heads heads_of(const at::Tensor& qkv) const;
  void turn(Heads& heads, const at::Tensor& positions);  // where positions are rotary; undefined: from 0 on
  at::Tensor finished(const at::Tensor& x, at::Tensor out);

  MultiHeadConfig config_;
  std::string projections_;  // of q, k and v, which there are
  at::Tensor rotary_table_;  // follows from the config, so it is not a weight
};

}  // namespace cosformer::nn
