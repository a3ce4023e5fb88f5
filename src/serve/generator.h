// Reading and writing text with a language model, in one session after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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

  // As much of `tokens` as belongs to the session's stretch; tells how much that was. Texts are cut at the same places
  // however they arrive, so that whoever has read the same tokens has the same bits. Computes the last token's logits
  // where that is all of `tokens`. `hidden`: is given what the model makes of them, [count, width]. Of one token of
  // another kind, chosen, see next().
  std::size_t read_stretch(Session& session, std::span<const std::int32_t> tokens, at::Tensor* hidden = nullptr) const;
  // The place of the first cut behind so many tokens.
  std::int64_t cut_behind(std::int64_t consumed) const { return (consumed / stretch_ + 1) * stretch_; }
  std::int64_t stretch() const { return stretch_; }

  // Reads one token of each of a state's rows; gives the logits of what follows them, [rows, vocabulary] float32.
  at::Tensor read_together(const std::vector<std::int32_t>& tokens, models::LmState& state) const;

  // The token that next() would choose, the session having read `consumed` tokens.
  std::int32_t chosen(const Session& session, std::int64_t consumed, const SamplingOptions& options) const;
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
  std::int64_t stretch_;
};

}  // namespace cosformer::serve
