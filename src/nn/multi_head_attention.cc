#include "nn/multi_head_attention.h"

#include <tuple>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/linear.h"
#include "nn/mechanisms/attention_traits.h"
#include "nn/norm.h"
#include "nn/positions/positions.h"

namespace cosformer::nn {

MultiHeadAttention::MultiHeadAttention(const MultiHeadConfig& config, const AttentionConfig& attention)
    : config_(config), projections_(projections_of(attention)) {
  config_.shape.width = config.width;
  const std::int64_t inner = config.shape.heads * config.shape.dim;
  const std::int64_t projected = static_cast<std::int64_t>(projections_.size()) * inner;
  const auto layer = [&](std::int64_t in, std::int64_t out) {
    return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(config.bias));
  };
  qkv_proj = register_module("qkv_proj", layer(config.width, projected));
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
  if (attention.gate) gate_proj = register_module("gate_proj", layer(config.width, inner));
  out_proj = register_module("out_proj", layer(inner, config.width));
  if (config.rotary) {
    require_positions_possible(attention, "rotary");
    if (config.shape.dim % 2 != 0) throw UserError("settings: rotary positions need heads of an even dimension");
    rotary_table_ = rotary_table(config.shape.max_length, config.shape.dim);
  }
}

MultiHeadAttention::Heads MultiHeadAttention::heads_of(const at::Tensor& qkv) const {
  const auto count = static_cast<std::int64_t>(projections_.size());
  const at::Tensor parts = qkv.view({qkv.size(0), qkv.size(1), count, config_.shape.heads, config_.shape.dim});
  // Not by select(), whose gradients would be three tensors of the whole size, zeros but for a third, to be added up.
  const std::vector<at::Tensor> heads = parts.unbind(2);
  return {heads.front(), heads[count == 3 ? 1 : 0], heads.back()};
}

void MultiHeadAttention::turn(Heads& heads, const at::Tensor& positions) {
  if (!rotary_table_.defined()) return;
  if (rotary_table_.device() != heads.q.device()) rotary_table_ = rotary_table_.to(heads.q.device());
  const auto turned = [&](const at::Tensor& x) {
    return positions.defined() ? rotate_at(x, rotary_table_, positions) : rotate(x, rotary_table_);
  };
  heads.q = turned(heads.q);
  heads.k = turned(heads.k);
}

at::Tensor MultiHeadAttention::finished(const at::Tensor& x, at::Tensor out) {
  if (head_norm_weight.defined()) out = rms_norm(out, head_norm_weight);
  out = out.reshape({x.size(0), x.size(1), config_.shape.heads * config_.shape.dim});
  if (gate_proj) out = out * linear(gate_proj, x).sigmoid();
  return linear(out_proj, out);
}

at::Tensor MultiHeadAttention::forward(const at::Tensor& x, const at::Tensor& mask) {
  at::Tensor qkv = linear(qkv_proj, x);
  if (convolution) {
    // Neighbours that are padding must not leak into tokens.
    if (mask.defined()) qkv = qkv * mask.unsqueeze(-1).to(qkv.scalar_type());
    qkv = convolution->forward(qkv);
  }
  Heads heads = heads_of(qkv);
  turn(heads, {});
  if (positions) std::tie(heads.q, heads.k) = positions->forward(heads.q, heads.k);
  return finished(x, mechanism->forward_with_input(x, heads.q, heads.k, heads.v, mask));
}

at::Tensor MultiHeadAttention::forward_packed(const at::Tensor& x, const Packing& packing) {
  if (positions) throw UserError("stochastic positions cannot keep packed documents apart");
  at::Tensor qkv = linear(qkv_proj, x);
  if (convolution) qkv = convolution->forward_packed(qkv, packing);
  Heads heads = heads_of(qkv);
  turn(heads, packing.position);
  return finished(x, mechanism->forward_packed(heads.q, heads.k, heads.v, packing));
}

at::Tensor MultiHeadAttention::forward_stream(const at::Tensor& x, LayerState& state, const StreamClock& clock) {
  at::Tensor qkv = linear(qkv_proj, x);
  if (convolution) qkv = convolution->forward_stream(qkv, state.convolution);
  Heads heads = heads_of(qkv);
  if (rotary_table_.defined()) turn(heads, clock.positions(x.size(1)));
  return finished(x, mechanism->forward_stream_with_input(x, heads.q, heads.k, heads.v, state.mechanism, clock));
}

LayerState MultiHeadAttention::empty_state(std::int64_t batch) const {
  if (!config_.shape.causal) throw UserError("a model that is not causal cannot read a text stretch by stretch");
  if (positions) throw UserError("a model with stochastic positions cannot read a text stretch by stretch");
  const at::TensorOptions like = qkv_proj->weight.options().requires_grad(false);
  LayerState state{{}, mechanism->empty_state(batch, like)};
  if (convolution) {
    state.convolution = at::zeros({batch, convolution->weight.size(0) - 1, convolution->weight.size(1)}, like);
  }
  return state;
}

std::optional<std::int64_t> MultiHeadAttention::longest_stream() const {
  return config_.rotary ? std::optional(config_.shape.max_length) : mechanism->longest_stream();
}

}  // namespace cosformer::nn
