#include "models/longest_input.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "models/layer_pattern.h"

namespace cosformer::models {
namespace {

// Tokens that the model puts before the sequence.
std::int64_t own_tokens(const ModelConfig& config) {
  return config.pooling == "cls" ? 1 : 0;
}

bool has_table(const ModelConfig& config) {
  return config.positions == "learned" || config.positions == "grid";
}

// Mechanisms whose weights or patterns do not follow from the greatest length.
bool reads_any_length(const nn::AttentionConfig& attention) {
  constexpr std::array kNames{"cosformer", "cosformer_plus", "linear", "softmax",    "performer",
                              "rfa",       "one_vs_each",    "local",  "longformer", "nystromformer"};
  return std::find(kNames.begin(), kNames.end(), attention.name) != kNames.end();
}

bool has_horizon(const nn::AttentionConfig& attention) {
  return attention.reweight &&
         (attention.name == "cosformer" || attention.name == "cosformer_plus" || attention.name == "linear");
}

double horizon_of(const ModelConfig& config, const nn::AttentionConfig& attention) {
  return attention.horizon > 0 ? attention.horizon : static_cast<double>(config.input.max_length + own_tokens(config));
}

// The attention with the shortest horizon, of those that have one.
std::optional<nn::AttentionConfig> nearest(const ModelConfig& config) {
  std::optional<nn::AttentionConfig> found;
  for (const nn::AttentionConfig& attention : attentions_of(config)) {
    if (!has_horizon(attention)) continue;
    if (!found || horizon_of(config, attention) < horizon_of(config, *found)) found = attention;
  }
  return found;
}

// The first attention that is made for one length.
std::optional<nn::AttentionConfig> of_one_length(const ModelConfig& config) {
  for (const nn::AttentionConfig& attention : attentions_of(config)) {
    if (!reads_any_length(attention)) return attention;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> longest_input(const ModelConfig& config) {
  if (config.input.image_width > 0 || has_table(config) || of_one_length(config)) return config.input.max_length;
  const std::optional<nn::AttentionConfig> limit = nearest(config);
  if (!limit) return std::nullopt;
  return static_cast<std::int64_t>(horizon_of(config, *limit)) - own_tokens(config);
}

std::string why_not_longer(const ModelConfig& config) {
  if (config.input.image_width > 0) return "its images have so many pixels";
  if (has_table(config)) {
    return fmt::format("model.positions=\"{}\" has a place for each token of its training's longest and no more",
                       config.positions);
  }
  if (const std::optional<nn::AttentionConfig> attention = of_one_length(config)) {
    return fmt::format("model.attention=\"{}\" is made for the longest of its training", attention->name);
  }
  const std::optional<nn::AttentionConfig> limit = nearest(config);
  return limit && limit->horizon > 0 ? "that is its attention.horizon"
                                     : "its attention.horizon was left at the longest of its training";
}

ModelConfig lengthened(const ModelConfig& config, std::int64_t length) {
  ModelConfig longer = config;
  longer.input.max_length = std::max(config.input.max_length, length);
  for (nn::AttentionConfig attention : attentions_of(config)) {
    // Where it is not read it is left out: no horizon may be below the greatest length.
    attention.horizon = has_horizon(attention) ? horizon_of(config, attention) : 0;
    replace_attention(longer, attention);
  }
  return longer;
}

}  // namespace cosformer::models
