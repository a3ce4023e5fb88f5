#include "models/language/language_config.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "models/layer_pattern.h"
#include "models/model_size.h"

namespace cosformer::models {
namespace {

void add_tokenizer(Settings& s, LanguageModelConfig& c) {
  s.add("tokenizer.hash", c.tokenizer,
        "The model was trained with the tokenizer of this hash; another one is refused.");
}

void add_all(Settings& settings, LanguageModelConfig& config) {
  add_settings(settings, config, true);
}

void add_to_write(Settings& settings, LanguageModelConfig& config) {
  add_settings_to_write(settings, config.model);
  add_settings(settings, config.language);
  add_tokenizer(settings, config);
}

}  // namespace

void add_settings(Settings& s, LanguageOptions& o) {
  s.add("language.tied", o.tied,
        "A language model's output layer shares its weights with the input's embeddings, which saves parameters.");
  s.add("language.cutoffs", o.cutoffs,
        "From each of these ids on, rarer words have narrower embeddings and outputs; for large word vocabularies.");
  s.add("language.cutoff_divisor", o.cutoff_divisor,
        "Embeddings become narrower by this factor at each of language.cutoffs.", 1, 64);
}

void add_settings(Settings& s, LanguageModelConfig& c, bool with_input) {
  add_settings(s, c.model, with_input);
  add_settings(s, c.language);
  if (with_input) add_tokenizer(s, c);
}

std::vector<std::int64_t> cutoffs_of(const LanguageOptions& options, std::int64_t vocabulary) {
  std::vector<std::int64_t> cutoffs;
  for (const std::string& text : options.cutoffs) {
    std::int64_t id = 0;
    if (!parse_number(text, id) || id <= (cutoffs.empty() ? 0 : cutoffs.back()) || id >= vocabulary) {
      throw UserError(
          fmt::format("settings: language.cutoffs must be rising numbers between 0 and the vocabulary, {}; got \"{}\"",
                      vocabulary, text));
    }
    cutoffs.push_back(id);
  }
  return cutoffs;
}

void require_possible(const LanguageModelConfig& c) {
  const ModelConfig& m = c.model;
  if (m.input.vocabulary < 2) {
    throw UserError(
        fmt::format("a language model needs a vocabulary of at least two tokens; got {}", m.input.vocabulary));
  }
  if (m.input.max_length < 1) throw UserError("a language model needs a greatest length of at least one token");
  require_heads_fit(m);
  if (m.positions == "grid") {
    throw UserError(
        "settings: model.positions=grid tells rows and columns of images, and a language model reads text; set "
        "learned, sinusoidal, rotary or none");
  }
  const std::vector<std::int64_t> cutoffs = cutoffs_of(c.language, m.input.vocabulary);
  std::int64_t narrowest = m.width;
  for (std::size_t cut = 0; cut < cutoffs.size(); ++cut) narrowest /= c.language.cutoff_divisor;
  if (narrowest < 1) {
    throw UserError(
        fmt::format("settings: with model.width {}, {} language.cutoffs leave nothing of the rarest words' embeddings; "
                    "set fewer, or a smaller language.cutoff_divisor",
                    m.width, cutoffs.size()));
  }
  require_attention_possible(m);
  require_memory(m, size_of(c));
}

ModelSize size_of(const LanguageModelConfig& c) {
  return size_of(c.model, c.model.layers, c.language.cutoffs.empty());
}

std::string to_toml(const LanguageModelConfig& config) {
  return toml_of(config, add_to_write);
}

LanguageModelConfig language_model_config_from_toml(const std::string& text, const std::string& name) {
  const auto config = from_toml<LanguageModelConfig>(text, name, add_all);
  require_possible(config);
  return config;
}

}  // namespace cosformer::models
