#include "nn/multi_head_attention.h"

#include <tuple>

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/attention_traits.h"
#include "nn/norm.h"
#include "nn/positions.h"

namespace cosformer::nn {

MultiHeadAttention::MultiHeadAttention(const MultiHeadConfig& config, const AttentionConfig& attention)
    : config_(config), projections_(projections_of(attention)) {
  config_.shape.width = config.width;
  const std::int64_t inner = config.shape.heads * config.shape.dim;
  const std::int64_t projected = static_cast<std::int64_t>(projections_.size()) * inner;
  const auto linear = [&](std::int64_t in, std::int64_t out) {
    return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(config.bias));
  };
  qkv_proj = register_module("qkv_proj", linear(config.width, projected));
  if (attention.convolution > 0) {
    convolution = register_module(
        "convolution", std::make_shared<ShortConvolution>(projected, attention.convolution, config.shape.causal));
  }
  if (config.stochastic) {
    require_positions_possible(attention, "stochastic");
    positions = register_module(
        "positions", std::make_shared<StochasticPositions>(*config.stochastic, config.shape.heads, config.shape.dim));
    config_.shape.qk_dim = config.stochastic->realizations;
  }
  mechanism = register_module("mechanism", make_mechanism(attention, config_.shape));
  if (attention.head_norm) head_norm_weight = register_parameter("head_norm_weight", at::ones({config.shape.dim}));
  if (attention.gate) gate_proj = register_module("gate_proj", linear(config.width, inner));
  out_proj = register_module("out_proj", linear(inner, config.width));
  if (config.rotary) {
    require_positions_possible(attention, "rotary");
    if (config.shape.dim % 2 != 0) throw UserError("settings: rotary positions need heads of an even dimension");
    rotary_table_ = rotary_table(config.shape.max_length, config.shape.dim);
  }
}

at::Tensor MultiHeadAttention::forward(const at::Tensor& x, const at::Tensor& mask) {
  at::Tensor qkv = qkv_proj->forward(x);
  if (convolution) {
    // Neighbours that are padding must not leak into tokens.
    if (mask.defined()) qkv = qkv * mask.unsqueeze(-1).to(qkv.scalar_type());
    qkv = convolution->forward(qkv);
  }
  const std::int64_t batch = x.size(0), time = x.size(1), heads = config_.shape.heads, dim = config_.shape.dim;
  const auto count = static_cast<std::int64_t>(projections_.size());
  const at::Tensor parts = qkv.view({batch, time, count, heads, dim});
  at::Tensor q = parts.select(2, 0), k = parts.select(2, count == 3 ? 1 : 0);
  const at::Tensor v = parts.select(2, count - 1);
  if (rotary_table_.defined()) {
    if (rotary_table_.device() != x.device()) rotary_table_ = rotary_table_.to(x.device());
    q = rotate(q, rotary_table_);
    k = rotate(k, rotary_table_);
  }
  if (positions) std::tie(q, k) = positions->forward(q, k);
  at::Tensor out = mechanism->forward_with_input(x, q, k, v, mask);
  if (head_norm_weight.defined()) out = rms_norm(out, head_norm_weight);
  out = out.reshape({batch, time, heads * dim});
  if (gate_proj) out = out * gate_proj->forward(x).sigmoid();
  return out_proj->forward(out);
}

}  // namespace cosformer::nn
