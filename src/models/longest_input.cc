#include "models/longest_input.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

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

double horizon_of(const ModelConfig& config) {
  return config.attention.horizon > 0 ? config.attention.horizon
                                      : static_cast<double>(config.input.max_length + own_tokens(config));
}

}  // namespace

std::optional<std::int64_t> longest_input(const ModelConfig& config) {
  if (config.input.image_width > 0 || has_table(config) || !reads_any_length(config.attention)) {
    return config.input.max_length;
  }
  if (!has_horizon(config.attention)) return std::nullopt;
  return static_cast<std::int64_t>(horizon_of(config)) - own_tokens(config);
}

std::string why_not_longer(const ModelConfig& config) {
  if (config.input.image_width > 0) return "its images have so many pixels";
  if (has_table(config)) {
    return fmt::format("model.positions=\"{}\" has a place for each token of its training's longest and no more",
                       config.positions);
  }
  if (!reads_any_length(config.attention)) {
    return fmt::format("model.attention=\"{}\" is made for the longest of its training", config.attention.name);
  }
  return config.attention.horizon > 0 ? "that is its attention.horizon"
                                      : "its attention.horizon was left at the longest of its training";
}

ModelConfig lengthened(const ModelConfig& config, std::int64_t length) {
  ModelConfig longer = config;
  longer.input.max_length = std::max(config.input.max_length, length);
  if (has_horizon(config.attention)) {
    longer.attention.horizon = horizon_of(config);
  } else {
    longer.attention.horizon = 0;  // not read, but no horizon may be below the greatest length
  }
  return longer;
}

}  // namespace cosformer::models
