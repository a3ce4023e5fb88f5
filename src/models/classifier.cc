#include "models/classifier.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "models/block_config.h"
#include "models/drawn_pixels.h"
#include "models/layer_pattern.h"
#include "nn/embedding.h"

namespace cosformer::models {
namespace {

ModelConfig checked(ModelConfig config) {
  require_possible(config);
  complete_pattern_options(config);
  return config;
}

}  // namespace

Encoder::Encoder(const ModelConfig& config) : config_(config) {
  const double deviation = embedding_deviation(config);
  if (config.input.vocabulary > 0) {
    token_embedding_ =
        register_module("token_embedding", token_embedding(config.input.vocabulary, config.width, deviation));
  } else {
    value_embedding_ = register_module("value_embedding", torch::nn::Linear(1, config.width));
  }
  if (config.pooling == "cls") {
    class_embedding_ = register_parameter("class_embedding", at::empty({config.width}).normal_(0, deviation));
  }
  const std::int64_t longest = block_config(config, config.attention).attention.shape.max_length;
  positions_.emplace(*this, config.positions, longest, config.width, deviation);
  if (config.positions == "grid") {
    const auto table = [&](std::int64_t count) { return at::empty({count, config.width}).normal_(0, deviation); };
    row_embedding_ = register_parameter("row_embedding", table(config.input.image_height));
    column_embedding_ = register_parameter("column_embedding", table(config.input.image_width));
  }
  for (const nn::AttentionConfig& attention : layer_attentions(config)) {
    blocks_.push_back(register_module("block_" + std::to_string(blocks_.size()),
                                      std::make_shared<nn::Block>(block_config(config, attention), attention)));
  }
  norm_ = register_module("norm", std::make_shared<nn::Norm>(config.norm, config.width));
}

at::Tensor Encoder::with_positions(const at::Tensor& x, const at::Tensor& places) {
  at::Tensor positions = places;
  if (places.defined() && class_embedding_.defined()) {  // the class token comes first
    positions = at::cat({at::zeros({places.size(0), 1}, places.options()), places + 1}, 1);
  }
  if (!row_embedding_.defined()) return positions_->add(x, positions);
  // Pixels row by row; the class token has no place among them.
  const at::Tensor grid = (row_embedding_.unsqueeze(1) + column_embedding_.unsqueeze(0)).flatten(0, 1);
  const at::Tensor all =
      class_embedding_.defined() ? at::cat({at::zeros({1, config_.width}, grid.options()), grid}) : grid;
  return positions.defined() ? nn::add_embedded(x, all, positions) : x + all.narrow(0, 0, x.size(1));
}

at::Tensor Encoder::embed(const at::Tensor& content, const at::Tensor& places) {
  at::Tensor x = token_embedding_ ? nn::embed(token_embedding_->weight, content)
                                  : value_embedding_->forward(content.unsqueeze(-1));
  if (class_embedding_.defined()) {
    x = at::cat({class_embedding_.to(x.scalar_type()).expand({x.size(0), 1, config_.width}), x}, 1);
  }
  x = with_positions(x, places);
  return config_.dropout > 0 && is_training() ? at::dropout(x, config_.dropout, true) : x;
}

// Pixels [B, T, C] that stand column by column, or row by row, the other way; the class token stays the first.
at::Tensor Encoder::other_scan(const at::Tensor& x, bool by_columns) const {
  const std::int64_t before = class_embedding_.defined() ? 1 : 0, pixels = x.size(1) - before;
  if (pixels != config_.input.image_width * config_.input.image_height) {
    throw UserError(
        fmt::format("model.scan=alternate reads whole images of {} x {} pixels; got {} pixels. Set model.scan=rows, or "
                    "do not cut images by data.max_length",
                    config_.input.image_width, config_.input.image_height, pixels));
  }
  const std::int64_t lines = by_columns ? config_.input.image_width : config_.input.image_height;
  const at::Tensor turned = x.narrow(1, before, pixels).unflatten(1, {lines, pixels / lines}).transpose(1, 2);
  return before == 0 ? turned.flatten(1, 2) : at::cat({x.narrow(1, 0, before), turned.flatten(1, 2)}, 1);
}

at::Tensor Encoder::forward(const Sequences& input) {
  const DrawnPixels read = config_.skip_blank
                               ? drawn_pixels(input, config_.input.blank, is_training() ? config_.input.most_drawn : 0)
                               : DrawnPixels{input, {}};
  at::Tensor x = embed(read.sequences.content, read.places);
  at::Tensor mask = read.sequences.mask;
  if (mask.defined() && class_embedding_.defined()) {
    mask = at::cat({at::ones({mask.size(0), 1}, mask.options()), mask}, 1);
  }
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (layer > 0 && config_.scan == "alternate") {
      const bool by_columns = layer % 2 == 0;  // as the layer before it has read them
      x = other_scan(x, by_columns);
      if (mask.defined()) mask = other_scan(mask.unsqueeze(-1), by_columns).squeeze(-1);
    }
    x = blocks_[layer]->forward(x, mask);
  }
  x = norm_->forward(x);
  if (class_embedding_.defined()) return x.select(1, 0);
  if (!mask.defined()) return x.mean(1);
  const at::Tensor present = mask.unsqueeze(-1).to(x.scalar_type());
  return (x * present).sum(1) / present.sum(1).clamp_min(1);
}

Classifier::Classifier(const ModelConfig& config) : config_(checked(config)) {
  encoder_ = register_module("encoder", std::make_shared<Encoder>(config));
  if (config.pooled_norm == "batch") {
    pooled_norm_ = register_module("pooled_norm", torch::nn::BatchNorm1d(config.width));
  }
  const std::int64_t encodings = !config.input.pairs ? 1 : config.pair_features == "both" ? 2 : 4;
  hidden_ = register_module("hidden", torch::nn::Linear(encodings * config.width, config.feed_forward));
  output_ = register_module(
      "output", torch::nn::Linear(config.feed_forward, static_cast<std::int64_t>(config.input.classes.size())));
}

at::Tensor Classifier::classify(const at::Tensor& features) {
  return output_->forward(at::relu(hidden_->forward(features)));
}

at::Tensor Classifier::normed(const at::Tensor& encodings) {
  if (!pooled_norm_) return encodings;
  // Under autocast encodings may be of low precision, which their spread would not survive.
  const at::Tensor wide = encodings.to(at::kFloat);
  if (wide.size(0) > 1 || !is_training()) return pooled_norm_->forward(wide);
  // The only one of its batch has no spread: as in evaluation.
  return at::batch_norm(wide, pooled_norm_->weight, pooled_norm_->bias, pooled_norm_->running_mean,
                        pooled_norm_->running_var, false, 0, pooled_norm_->options.eps(), false);
}

at::Tensor Classifier::forward(const Sequences& first) {
  return classify(normed(encoder_->forward(first)));
}

at::Tensor Classifier::forward(const Sequences& first, const Sequences& second) {
  at::Tensor a = encoder_->forward(first), b = encoder_->forward(second);
  if (pooled_norm_) {
    const std::vector<at::Tensor> both = normed(at::cat({a, b})).chunk(2);
    a = both[0];
    b = both[1];
  }
  if (config_.pair_features == "both") return classify(at::cat({a, b}, -1));
  return classify(at::cat({a, b, a - b, a * b}, -1));
}

std::int64_t Classifier::parameter_count() const {
  std::int64_t count = 0;
  for (const at::Tensor& p : parameters()) count += p.numel();
  return count;
}

}  // namespace cosformer::models
