// A language model as data: what a model is (config.h), and what only language models have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/model_size.h"

namespace cosformer::models {

struct LanguageOptions {
  bool tied = true;  // the output reads the input's embeddings
  // First ids of rarer words, rising, for large vocabularies whose ids are sorted by frequency: words from each on have
  // embeddings that are `cutoff_divisor` times narrower than those before, and an output of their own. Empty: none.
  std::vector<std::string> cutoffs;
  std::int64_t cutoff_divisor = 4;
};

struct LanguageModelConfig {
  // input.vocabulary and input.max_length count; model.causal tells an autoregressive from a masked model.
  ModelConfig model;
  LanguageOptions language;
  std::string tokenizer;  // its hash; empty: not known
};

// Keys "language.*".
void add_settings(Settings& settings, LanguageOptions& options);
// Those, the model's, and with `with_input` "input.*" and "tokenizer.hash".
void add_settings(Settings& settings, LanguageModelConfig& config, bool with_input);

// `cutoffs` as numbers. Throws UserError for what are none, do not rise or leave the vocabulary.
std::vector<std::int64_t> cutoffs_of(const LanguageOptions& options, std::int64_t vocabulary);

// Throws UserError for what cannot be built.
void require_possible(const LanguageModelConfig& config);
ModelSize size_of(const LanguageModelConfig& config);

std::string to_toml(const LanguageModelConfig& config);
LanguageModelConfig language_model_config_from_toml(const std::string& text, const std::string& name);

}  // namespace cosformer::models
