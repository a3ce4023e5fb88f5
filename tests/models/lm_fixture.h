// Small language models and random texts for tests.
#pragma once

#include <memory>
#include <string>

#include <ATen/ATen.h>

#include "models/language/language_model.h"
#include "nn/mechanisms/attention_traits.h"

namespace cosformer::models {

inline LanguageModelConfig tiny_language_model(const std::string& attention, const std::string& positions = "none") {
  LanguageModelConfig c;
  c.model.input.vocabulary = 17;
  c.model.input.max_length = 64;
  c.model.causal = true;
  c.model.attention = nn::preset_of(attention, true);
  c.model.layers = 2;
  c.model.width = 24;
  c.model.heads = 3;
  c.model.feed_forward = 32;
  c.model.positions = positions;
  c.model.dropout = 0;
  return c;
}

// With weights large enough that tokens matter to each other.
inline std::shared_ptr<LanguageModel> seeded_model(const LanguageModelConfig& config) {
  at::manual_seed(7);
  auto model = std::make_shared<LanguageModel>(config);
  at::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) {
    const bool is_vocabulary = item.key().find("embedding") != std::string::npos || item.key() == "output.weight";
    if (is_vocabulary) item.value().normal_(0, 1);
  }
  model->eval();
  return model;
}

inline at::Tensor random_tokens(std::int64_t rows, std::int64_t time, std::int64_t vocabulary = 17) {
  return at::randint(vocabulary, {rows, time}, at::kLong);
}

}  // namespace cosformer::models
