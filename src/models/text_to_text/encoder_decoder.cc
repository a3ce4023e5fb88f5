#include "models/text_to_text/encoder_decoder.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "models/block_config.h"
#include "models/language/lm_losses.h"
#include "models/layer_pattern.h"
#include "models/model_size.h"
#include "models/trained_weights.h"
#include "nn/embedding.h"
#include "nn/full_precision.h"

namespace cosformer::models {
namespace {

EncoderDecoderConfig checked(EncoderDecoderConfig config) {
  require_possible(config);
  complete_pattern_options(config.model);
  return config;
}

}  // namespace

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config) : config_(checked(config)) {
  ModelConfig m = config.model;
  m.pooling = "mean";  // no token of its own before the text
  const double deviation = embedding_deviation(m);
  token_embedding_ = register_module("token_embedding", token_embedding(m.input.vocabulary, m.width, deviation));
  positions_.emplace(*this, m.positions, m.input.max_length, m.width, deviation);
  for (const nn::AttentionConfig& attention : layer_attentions(m)) {
    encoder_blocks_.push_back(register_module("encoder_block_" + std::to_string(encoder_blocks_.size()),
                                              std::make_shared<nn::Block>(block_config(m, attention), attention)));
  }
  encoder_norm_ = register_module("encoder_norm", std::make_shared<nn::Norm>(m.norm, m.width));
  m.causal = true;
  const nn::BlockConfig decoder = block_config(m, config.decoder);
  for (std::int64_t layer = 0; layer < config.decoder_layers; ++layer) {
    decoder_blocks_.push_back(
        register_module("decoder_block_" + std::to_string(layer),
                        std::make_shared<nn::DecoderBlock>(decoder, config.decoder, config.cross)));
  }
  decoder_norm_ = register_module("decoder_norm", std::make_shared<nn::Norm>(m.norm, m.width));
}

void EncoderDecoder::require_length(std::int64_t tokens) const {
  const std::int64_t most = config_.model.input.max_length;
  if (tokens <= most) return;
  throw UserError(fmt::format("a text of {} tokens is longer than the model's {}; cut it", tokens - 1, most - 1));
}

at::Tensor EncoderDecoder::embed(const at::Tensor& tokens, const at::Tensor& positions) {
  const at::Tensor x = positions_->add(nn::embed(token_embedding_->weight, tokens), positions);
  const double dropout = config_.model.dropout;
  return dropout > 0 && is_training() ? at::dropout(x, dropout, true) : x;
}

EncodedSource EncoderDecoder::encode(const at::Tensor& tokens, const at::Tensor& mask) {
  require_length(tokens.size(1));
  at::Tensor x = embed(tokens, {});
  for (const auto& block : encoder_blocks_) x = block->forward(x, mask);
  return {encoder_norm_->forward(x), mask};
}

at::Tensor EncoderDecoder::hidden(const at::Tensor& inputs, const at::Tensor& mask, const EncodedSource& source) {
  require_length(inputs.size(1));
  at::Tensor x = embed(inputs, {});
  for (const auto& block : decoder_blocks_) x = block->forward(x, mask, source.hidden, source.mask);
  return decoder_norm_->forward(x);
}

at::Tensor EncoderDecoder::logits(const at::Tensor& hidden) {
  return nn::at_least_float(at::matmul(hidden, token_embedding_->weight.t()));
}

at::Tensor EncoderDecoder::losses(const at::Tensor& hidden, const at::Tensor& targets) {
  return token_losses(hidden.flatten(0, 1), token_embedding_->weight, targets.flatten()).view(targets.sizes());
}

WritingState EncoderDecoder::begin_writing(const EncodedSource& source) {
  const std::int64_t batch = source.hidden.size(0);
  WritingState state{nn::StreamClock(batch, device()), {}, {}};
  for (const auto& block : decoder_blocks_) {
    state.layers.push_back(block->attention->empty_state(batch));
    state.memories.push_back(block->cross->memory(source.hidden, source.mask));
  }
  return state;
}

at::Tensor EncoderDecoder::write_hidden(const at::Tensor& tokens, WritingState& state) {
  const std::int64_t time = tokens.size(1);
  require_length(state.clock.most_consumed() + time);
  at::Tensor x = embed(tokens, positions_->adds() ? state.clock.positions(time) : at::Tensor());
  for (std::size_t at = 0; at < decoder_blocks_.size(); ++at) {
    x = decoder_blocks_[at]->forward_stream(x, state.layers.at(at), state.memories.at(at), state.clock);
  }
  state.clock.advance(time);
  return decoder_norm_->forward(x);
}

std::int64_t EncoderDecoder::parameter_count() const {
  std::int64_t count = 0;
  for (const at::Tensor& p : parameters()) count += p.numel();
  return count;
}

bool is_encoder_decoder(const std::string& path) {
  return std::filesystem::is_regular_file(path) && safetensors::Reader(path).metadata().contains(kEncoderDecoderKey);
}

std::shared_ptr<EncoderDecoder> load_encoder_decoder(const std::string& path) {
  const safetensors::Reader file(path);
  const EncoderDecoderConfig config = encoder_decoder_config_from(file.metadata(), path);
  require_numbers(file, size_of(config));
  auto model = std::make_shared<EncoderDecoder>(config);
  load_trained_weights(path, *model);
  return model;
}

}  // namespace cosformer::models
