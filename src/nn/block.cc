#include "nn/block.h"

#include <ATen/ATen.h>

#include "nn/linear.h"
#include "nn/mechanisms/attention_traits.h"

namespace cosformer::nn {

FeedForward::FeedForward(const BlockConfig& config) : activation_(config.activation) {
  const std::int64_t width = config.attention.width, inner = config.feed_forward;
  in_proj = register_module("in_proj", torch::nn::Linear(width, activation_ == "gated" ? 2 * inner : inner));
  out_proj = register_module("out_proj", torch::nn::Linear(inner, width));
}

at::Tensor FeedForward::forward(const at::Tensor& x) {
  const at::Tensor h = linear(in_proj, x);
  if (activation_ == "relu") return linear(out_proj, at::relu(h));
  if (activation_ == "gelu") return linear(out_proj, at::gelu(h));
  const std::vector<at::Tensor> halves = h.chunk(2, -1);
  return linear(out_proj, at::silu(halves[0]) * halves[1]);
}

Block::Block(const BlockConfig& config, const AttentionConfig& attention_config)
    : config_(config), products_only_(!reads_input_in_float(attention_config)) {
  attention_norm = register_module("attention_norm", std::make_shared<Norm>(config.norm, config.attention.width));
  attention = register_module("attention", std::make_shared<MultiHeadAttention>(config.attention, attention_config));
  feed_forward_norm = register_module("feed_forward_norm", std::make_shared<Norm>(config.norm, config.attention.width));
  feed_forward = register_module("feed_forward", std::make_shared<FeedForward>(config));
}

at::Tensor Block::drop(const at::Tensor& x) const {
  return config_.dropout > 0 && is_training() ? at::dropout(x, config_.dropout, true) : x;
}

template <class Attend>
at::Tensor Block::run(const at::Tensor& x, const Attend& attend) {
  if (config_.norm_first) {
    const at::Tensor input = products_only_ ? attention_norm->forward_for_products(x) : attention_norm->forward(x);
    const at::Tensor y = x + drop(attend(input));
    return y + drop(feed_forward->forward(feed_forward_norm->forward_for_products(y)));
  }
  const at::Tensor y = attention_norm->forward(x + drop(attend(x)));
  return feed_forward_norm->forward(y + drop(feed_forward->forward(y)));
}

at::Tensor Block::forward(const at::Tensor& x, const at::Tensor& mask) {
  return run(x, [&](const at::Tensor& y) { return attention->forward(y, mask); });
}

at::Tensor Block::forward_packed(const at::Tensor& x, const Packing& packing) {
  return run(x, [&](const at::Tensor& y) { return attention->forward_packed(y, packing); });
}

at::Tensor Block::forward_stream(const at::Tensor& x, LayerState& state, const StreamClock& clock) {
  return run(x, [&](const at::Tensor& y) { return attention->forward_stream(y, state, clock); });
}

}  // namespace cosformer::nn
