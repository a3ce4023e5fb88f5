// A small language model of bytes with random weights, large enough that its choices are clear.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizers/tokenizer.h"
#include "models/lm_fixture.h"
#include "serve/generator.h"

namespace cosformer::serve {

// `attention`: a mechanism, or "hybrid", whose first layer carries a state and whose second keeps keys and values.
inline models::LanguageModelConfig byte_model_config(const std::string& attention, std::int64_t max_length) {
  const bool is_hybrid = attention == "hybrid";
  models::LanguageModelConfig c = models::tiny_language_model(is_hybrid ? "cosformer_plus" : attention,
                                                              attention == "softmax" || is_hybrid ? "rotary" : "none");
  if (is_hybrid) c.model.pattern = {"cosformer_plus", "softmax"};
  c.model.input.vocabulary = data::byte_tokenizer()->vocabulary();
  c.model.input.max_length = max_length;
  c.tokenizer = data::byte_tokenizer()->hash();
  c.language.tied = false;  // a tied one with random weights writes the token that it has just read
  return c;
}

inline Generator byte_generator(const std::string& attention, std::int64_t max_length = 256) {
  return {models::seeded_model(byte_model_config(attention, max_length)), data::byte_tokenizer()};
}

}  // namespace cosformer::serve
