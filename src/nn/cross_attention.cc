#include "nn/cross_attention.h"

#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "nn/linear.h"
#include "nn/norm.h"

namespace cosformer::nn {
namespace {

// Throws what the mechanism throws where it cannot: better now than in the first step.
void require_cross(Mechanism& mechanism, const AttentionShape& shape) {
  const at::NoGradGuard no_grad;
  const bool was_training = mechanism.is_training();
  mechanism.eval();
  const at::Tensor one = at::zeros({1, 1, shape.heads, shape.dim});
  mechanism.forward_cross(one, one, one, {});
  mechanism.train(was_training);
}

}  // namespace

AttentionConfig cross_attention_config(const AttentionConfig& config) {
  AttentionConfig cross = config;
  cross.decay = false;
  cross.token_decay = false;
  cross.convolution = 0;
  return cross;
}

CrossAttention::CrossAttention(const MultiHeadConfig& config, const AttentionConfig& attention) : shape_(config.shape) {
  shape_.causal = false;
  shape_.width = config.width;
  const std::int64_t inner = shape_.heads * shape_.dim;
  const auto layer = [&](std::int64_t in, std::int64_t out) {
    return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(config.bias));
  };
  q_proj = register_module("q_proj", layer(config.width, inner));
  kv_proj = register_module("kv_proj", layer(config.width, 2 * inner));
  mechanism = register_module("mechanism", make_mechanism(attention, shape_));
  require_cross(*mechanism, shape_);
  if (attention.head_norm) head_norm_weight = register_parameter("head_norm_weight", at::ones({shape_.dim}));
  if (attention.gate) gate_proj = register_module("gate_proj", layer(config.width, inner));
  out_proj = register_module("out_proj", layer(inner, config.width));
}

at::Tensor CrossAttention::queries(const at::Tensor& x) {
  return linear(q_proj, x).view({x.size(0), x.size(1), shape_.heads, shape_.dim});
}

std::pair<at::Tensor, at::Tensor> CrossAttention::keys_and_values(const at::Tensor& source) {
  const at::Tensor both = linear(kv_proj, source).view({source.size(0), source.size(1), 2, shape_.heads, shape_.dim});
  const std::vector<at::Tensor> parts = both.unbind(2);  // one gradient for both, as in MultiHeadAttention
  return {parts[0], parts[1]};
}

at::Tensor CrossAttention::finished(const at::Tensor& x, at::Tensor out) {
  if (head_norm_weight.defined()) out = rms_norm(out, head_norm_weight);
  out = out.reshape({x.size(0), x.size(1), shape_.heads * shape_.dim});
  if (gate_proj) out = out * linear(gate_proj, x).sigmoid();
  return linear(out_proj, out);
}

at::Tensor CrossAttention::forward(const at::Tensor& x, const at::Tensor& source, const at::Tensor& mask) {
  const auto [k, v] = keys_and_values(source);
  return finished(x, mechanism->forward_cross(queries(x), k, v, mask));
}

MechanismState CrossAttention::memory(const at::Tensor& source, const at::Tensor& mask) {
  const auto [k, v] = keys_and_values(source);
  return mechanism->cross_memory(k, v, mask);
}

at::Tensor CrossAttention::forward_stream(const at::Tensor& x, const MechanismState& memory, const StreamClock& clock) {
  return finished(x, mechanism->recall(queries(x), memory, clock));
}

}  // namespace cosformer::nn
