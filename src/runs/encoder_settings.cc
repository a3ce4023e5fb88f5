#include "runs/encoder_settings.h"

#include <fmt/core.h>

#include "base/error.h"
#include "models/layer_pattern.h"
#include "runs/trained_models.h"

namespace cosformer::runs {
namespace {

// Settings of the classifier that the language model has no say in.
bool is_free(const std::string& key) {
  return key == "model.dropout" || key == "model.pooling" || key == "model.pooled_norm" || key == "model.pair_features";
}

std::vector<Settings::Description> descriptions_of(models::ModelConfig config) {
  Settings settings;
  models::add_settings(settings, config, false);
  return settings.descriptions();
}

}  // namespace

bool classifies_texts(const std::string& task) {
  return task == "text_files" || task == "text_pairs" || task == "text";
}

void take_encoder_settings(RunConfig& config, const Settings& settings) {
  if (config.train.init.empty()) return;
  if (!classifies_texts(config.data.task)) {
    throw UserError(
        fmt::format("settings: train.init begins classifiers of text (text_files, text_pairs, text); the task is '{}'",
                    config.data.task));
  }
  const models::LanguageModelConfig from = load_trained_language_model(config.train.init)->config();
  if (!from.language.cutoffs.empty()) {
    throw UserError(fmt::format(
        "settings: train.init cannot begin from '{}': its embeddings are of different widths (language.cutoffs)",
        config.train.init));
  }
  const auto wanted = descriptions_of(config.model), there = descriptions_of(from.model);
  std::string free_settings;  // as a settings file has them
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (is_free(wanted[at].key)) {
      free_settings += fmt::format("{} = {}\n", wanted[at].key, wanted[at].value);
      continue;
    }
    if (!settings.was_set(wanted[at].key) || wanted[at].value == there[at].value) continue;
    throw UserError(fmt::format("settings: {} is {}, but train.init='{}' has {}; leave it out", wanted[at].key,
                                wanted[at].value, config.train.init, there[at].value));
  }
  models::ModelConfig model = from.model;
  model.input = config.model.input;
  Settings own;
  models::add_settings(own, model, false);
  own.read_toml(free_settings, "the classifier's settings");
  const std::int64_t longest = from.model.input.max_length;
  for (nn::AttentionConfig attention : models::attentions_of(model)) {
    const bool has_horizon = attention.name == "cosformer" || attention.name == "cosformer_plus";
    if (!has_horizon || attention.horizon > 0) continue;
    attention.horizon = static_cast<double>(longest);
    models::replace_attention(model, attention);
  }
  config.model = model;
  if (config.data.max_length == 0) config.data.max_length = longest - (model.pooling == "cls" ? 1 : 0);
}

}  // namespace cosformer::runs
