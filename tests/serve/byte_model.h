// A small language model of bytes with random weights, large enough that its choices are clear.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizers/tokenizer.h"
#include "models/lm_fixture.h"
#include "serve/generator.h"

namespace cosformer::serve {

inline models::LanguageModelConfig byte_model_config(const std::string& attention, std::int64_t max_length) {
  models::LanguageModelConfig c = models::tiny_language_model(attention, attention == "softmax" ? "rotary" : "none");
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
