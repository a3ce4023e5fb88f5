#include "nn/decoder_block.h"

#include <ATen/ATen.h>

#include "nn/mechanisms/attention_traits.h"

namespace cosformer::nn {

DecoderBlock::DecoderBlock(const BlockConfig& config, const AttentionConfig& attention_config,
                           const AttentionConfig& cross_config)
    : config_(config), products_only_(!reads_input_in_float(attention_config)) {
  const auto norm = [&] { return std::make_shared<Norm>(config.norm, config.attention.width); };
  attention_norm = register_module("attention_norm", norm());
  attention = register_module("attention", std::make_shared<MultiHeadAttention>(config.attention, attention_config));
  cross_norm = register_module("cross_norm", norm());
  cross = register_module("cross", std::make_shared<CrossAttention>(config.attention, cross_config));
  feed_forward_norm = register_module("feed_forward_norm", norm());
  feed_forward = register_module("feed_forward", std::make_shared<FeedForward>(config));
}

template <class Part>
at::Tensor DecoderBlock::with_residual(const at::Tensor& x, Norm& norm, const Part& part, bool products_only) const {
  at::Tensor y = part(!config_.norm_first ? x : products_only ? norm.forward_for_products(x) : norm.forward(x));
  if (config_.dropout > 0 && is_training()) y = at::dropout(y, config_.dropout, true);
  return config_.norm_first ? x + y : norm.forward(x + y);
}

template <class Attend, class Look>
at::Tensor DecoderBlock::run(const at::Tensor& x, const Attend& attend, const Look& look) {
  const at::Tensor attended = with_residual(x, *attention_norm, attend, products_only_);
  const at::Tensor informed = with_residual(attended, *cross_norm, look);
  return with_residual(informed, *feed_forward_norm, [&](const at::Tensor& y) { return feed_forward->forward(y); });
}

at::Tensor DecoderBlock::forward(const at::Tensor& x, const at::Tensor& mask, const at::Tensor& source,
                                 const at::Tensor& source_mask) {
  return run(
      x, [&](const at::Tensor& y) { return attention->forward(y, mask); },
      [&](const at::Tensor& y) { return cross->forward(y, source, source_mask); });
}

at::Tensor DecoderBlock::forward_stream(const at::Tensor& x, LayerState& state, const MechanismState& memory,
                                        const StreamClock& clock) {
  return run(
      x, [&](const at::Tensor& y) { return attention->forward_stream(y, state, clock); },
      [&](const at::Tensor& y) { return cross->forward_stream(y, memory, clock); });
}

}  // namespace cosformer::nn
