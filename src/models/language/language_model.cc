#include "models/language/language_model.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "models/block_config.h"
#include "models/language/lm_losses.h"
#include "models/layer_pattern.h"
#include "nn/embedding.h"
#include "nn/full_precision.h"
#include "nn/row_products.h"

namespace cosformer::models {
namespace {

LanguageModelConfig checked(LanguageModelConfig config) {
  require_possible(config);
  complete_pattern_options(config.model);
  return config;
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& config) : config_(checked(config)) {
  const ModelConfig& m = config.model;
  const double deviation = embedding_deviation(m);
  const std::vector<std::int64_t> cutoffs = cutoffs_of(config.language, m.input.vocabulary);
  if (!cutoffs.empty()) {
    vocabulary_ = register_module("vocabulary", std::make_shared<AdaptiveVocabulary>(AdaptiveVocabularyConfig{
                                                    m.width, m.input.vocabulary, cutoffs,
                                                    config.language.cutoff_divisor, config.language.tied, deviation}));
  } else {
    token_embedding_ = register_module("token_embedding", token_embedding(m.input.vocabulary, m.width, deviation));
  }
  positions_.emplace(*this, m.positions, m.input.max_length, m.width, deviation);
  for (const nn::AttentionConfig& attention : layer_attentions(m)) {
    blocks_.push_back(register_module("block_" + std::to_string(blocks_.size()),
                                      std::make_shared<nn::Block>(block_config(m, attention), attention)));
  }
  norm_ = register_module("norm", std::make_shared<nn::Norm>(m.norm, m.width));
  if (!config.language.tied && cutoffs.empty()) {
    const auto options = torch::nn::LinearOptions(m.width, m.input.vocabulary).bias(false);
    output_ = register_module("output", torch::nn::Linear(options));
  }
}

at::Tensor LanguageModel::embed(const at::Tensor& tokens, const at::Tensor& positions) {
  const at::Tensor x = positions_->add(
      vocabulary_ ? vocabulary_->embed(tokens) : nn::embed(token_embedding_->weight, tokens), positions);
  const double dropout = config_.model.dropout;
  return dropout > 0 && is_training() ? at::dropout(x, dropout, true) : x;
}

at::Tensor LanguageModel::hidden(const at::Tensor& tokens, const at::Tensor& cu_seqlens, const at::Tensor& mask) {
  if (!cu_seqlens.defined()) {
    if (tokens.size(1) > config_.model.input.max_length) {
      throw UserError(fmt::format("a text of {} tokens is longer than the model's {}; give less of it at once",
                                  tokens.size(1), config_.model.input.max_length));
    }
    at::Tensor x = embed(tokens, {});
    for (const auto& block : blocks_) x = block->forward(x, mask);
    return norm_->forward(x);
  }
  if (mask.defined()) throw UserError("packed texts have no padding: give either cu_seqlens or a mask");
  const nn::Packing packing = nn::Packing::of(cu_seqlens, tokens.size(0), tokens.size(1));
  at::Tensor x = embed(tokens, packing.position);
  for (const auto& block : blocks_) x = block->forward_packed(x, packing);
  return norm_->forward(x);
}

const at::Tensor& LanguageModel::output_weight() const {
  return config_.language.tied ? token_embedding_->weight : output_->weight;
}

at::Tensor LanguageModel::logits(const at::Tensor& hidden) {
  if (vocabulary_) return vocabulary_->log_probabilities(hidden);
  return nn::at_least_float(nn::goes_row_by_row(hidden, output_weight()) ? nn::product(hidden, output_weight())
                                                                         : at::matmul(hidden, output_weight().t()));
}

at::Tensor LanguageModel::next_logits(const at::Tensor& hidden) {
  const nn::RowByRow row_by_row;
  return logits(hidden);
}

at::Tensor LanguageModel::losses(const at::Tensor& hidden, const at::Tensor& targets) {
  const at::Tensor rows = hidden.flatten(0, 1), wanted = targets.flatten();
  const at::Tensor all = vocabulary_ ? vocabulary_->losses(rows, wanted) : token_losses(rows, output_weight(), wanted);
  return all.view(targets.sizes());
}

LmState LanguageModel::empty_state(std::int64_t batch) const {
  LmState state{nn::StreamClock(batch, device()), {}};
  for (const auto& block : blocks_) state.layers.push_back(block->attention->empty_state(batch));
  return state;
}

at::Tensor LanguageModel::stream_hidden(const at::Tensor& tokens, LmState& state) {
  const std::int64_t time = tokens.size(1), behind = state.clock.most_consumed();
  const std::optional<std::int64_t> longest = longest_stream();
  if (longest.has_value() && behind + time > *longest) {
    throw UserError(fmt::format(
        "the text would have {} tokens, and the model's horizon is {}: it can neither read nor write beyond it",
        behind + time, *longest));
  }
  const nn::RowByRow row_by_row(time == 1);  // a step of decoding: a text's bits must not depend on the others'
  at::Tensor x = embed(tokens, positions_->adds() ? state.clock.positions(time) : at::Tensor());
  for (std::size_t at = 0; at < blocks_.size(); ++at) {
    x = blocks_[at]->forward_stream(x, state.layers.at(at), state.clock);
  }
  state.clock.advance(time);
  return norm_->forward(x);
}

std::optional<std::int64_t> LanguageModel::longest_stream() const {
  if (positions_->adds()) return config_.model.input.max_length;
  std::optional<std::int64_t> longest;
  for (const auto& block : blocks_) {
    const std::optional<std::int64_t> own = block->attention->longest_stream();
    if (own.has_value()) longest = std::min(*own, longest.value_or(*own));
  }
  return longest;
}

std::int64_t LanguageModel::parameter_count() const {
  std::int64_t count = 0;
  for (const at::Tensor& p : parameters()) count += p.numel();
  return count;
}

}  // namespace cosformer::models
