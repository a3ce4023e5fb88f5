// A text that a language model reads and writes: all that is needed to go on with it, in memory or as a file.
//
// The file is a safetensors file (base/formats/safetensors.h): the state's tensors, the last logits and the recent
// tokens; among its metadata are the version, the hashes of model and tokenizer, and a SHA-256 of everything else. A
// session goes on only with the model and the tokenizer that it was made with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "models/language/language_model.h"

namespace cosformer::serve {

struct Session {
  models::LmState state;
  at::Tensor logits;                 // [vocabulary] float32 on the CPU: of the token after the last
  std::vector<std::int32_t> recent;  // the last tokens, at most kRecentTokens
  std::uint64_t seed = 0;            // of the random numbers that tokens are chosen with

  static constexpr std::size_t kRecentTokens = 1024;
  void remember(std::span<const std::int32_t> tokens);  // as the last ones
  std::int64_t consumed() const { return state.clock.consumed().at(0); }
};

// Whose session it is.
struct SessionOwner {
  std::string model_hash, tokenizer_hash;
};

// Written aside and renamed.
void save_session(const std::string& path, const Session& session, const SessionOwner& owner);

// The state is put on the model's device. Throws UserError when the file is not a whole session of this version, or is
// one of another model or tokenizer.
Session load_session(const std::string& path, const models::LanguageModel& model, const SessionOwner& owner);

}  // namespace cosformer::serve
