// Reading and writing text with a language model, in one session after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "data/tokenizers/tokenizer.h"
#include "models/language/language_model.h"
#include "serve/sampling.h"
#include "serve/session.h"

namespace cosformer::serve {

class Generator {
 public:
  // The model is put in evaluation mode. Throws UserError when it was trained with another tokenizer, is not causal or
  // cannot be run stretch by stretch.
  Generator(std::shared_ptr<models::LanguageModel> model, data::TokenizerPointer tokenizer);

  // A text that has just begun: the model has read <eod>, which stands before every text.
  Session begin(std::uint64_t seed) const;

  // `done` is told the tokens read since the last call. Throws UserError beyond the horizon, before anything is read.
  void read(Session& session, std::span<const std::int32_t> tokens,
            const std::function<void(std::size_t)>& done = {}) const;

  // The next token, which the session has then read. The random number it is chosen with is a function of the session's
  // seed and of how many tokens it has read.
  std::int32_t next(Session& session, const SamplingOptions& options) const;

  // Tokens that the text may still grow by; nothing: any number.
  std::optional<std::int64_t> room(const Session& session) const;

  SessionOwner owner() const;  // takes a while for large models
  const models::LanguageModel& model() const { return *model_; }
  const data::TokenizerPointer& tokenizer() const { return tokenizer_; }

 private:
  std::shared_ptr<models::LanguageModel> model_;
  data::TokenizerPointer tokenizer_;
};

}  // namespace cosformer::serve
