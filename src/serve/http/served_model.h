// A run that the server answers for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/asked_model.h"
#include "serve/engine/engine.h"
#include "serve/engine/sessions.h"

namespace cosformer::serve {

struct ServedModel {
  std::string id, kind, attention, tokenizer_kind;
  std::int64_t created = 0, parameters = 0;
  std::optional<std::int64_t> context_length;  // nothing: any
  std::int64_t vocabulary = 0;
  std::uint64_t state_bytes = 0, softmax_cache_bytes_per_token = 0;
  std::vector<std::string> classes;
  data::TokenizerPointer tokenizer;  // null: none
  // Of the other kinds, one of these.
  std::unique_ptr<TextClassifier> classifier;
  std::unique_ptr<TextAnswerer> answerer;
  std::unique_ptr<GapFiller> filler;
  // Of language models.
  std::unique_ptr<Engine> engine;
  std::unique_ptr<SessionStore> sessions;
};

struct ServedModelOptions {
  std::string device = "auto";
  EngineOptions engine;
  std::string sessions_folder;                    // of all models; empty: none
  std::uint64_t memory = std::uint64_t{2} << 30;  // of states: half for sessions, half for the prefix cache
};

// "runs/book" is called "book". Throws UserError when that is no name.
std::string name_of_run(const std::string& run);
std::int64_t time_of_run(const std::string& run);  // when it was last written, in seconds since 1970

// The language model of a run, autoregressive or masked. Throws UserError when it cannot be served.
std::unique_ptr<ServedModel> open_served_model(const std::string& run, const ServedModelOptions& options);

}  // namespace cosformer::serve
