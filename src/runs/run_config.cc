#include "runs/run_config.h"

#include "base/error.h"
#include "models/layer_pattern.h"
#include "runs/encoder_settings.h"

namespace cosformer::runs {
namespace {

constexpr double kHeldOutText = 0.05;  // texts are long: less is enough

}  // namespace

void add_settings(Settings& settings, RunConfig& config) {
  data::add_settings(settings, config.data);
  data::add_settings(settings, config.text);
  data::add_settings(settings, config.recall);
  models::add_settings(settings, config.model, false);
  models::add_settings(settings, config.language);
  models::add_settings(settings, config.text_to_text);
  add_settings(settings, config.train);
}

Kind kind_of(const RunConfig& config) {
  if (data::is_language_task(config.data.task)) return Kind::kLanguageModel;
  if (config.data.task == data::kRecallTask) return Kind::kRecall;
  return config.data.task == "text_to_text" ? Kind::kTextToText : Kind::kClassifier;
}

void apply_presets(RunConfig& config, const Settings& settings) {
  if (is_language(config)) {
    const bool causal = config.data.task == "lm";
    if (settings.was_set("model.causal") && config.model.causal != causal) {
      throw UserError("settings: model.causal follows from the task: lm reads forward, mlm both ways; leave it out");
    }
    config.model.causal = causal;
    if (!settings.was_set("data.valid_fraction")) config.data.valid_fraction = kHeldOutText;
    if (!settings.was_set("data.test_fraction")) config.data.test_fraction = kHeldOutText;
  }
  if (is_recall(config)) {
    if (settings.was_set("model.causal") && !config.model.causal) {
      throw UserError("settings: model.causal follows from the task: recall reads forward; leave it out");
    }
    config.model.causal = true;
  }
  if (is_text_to_text(config) && config.model.causal) {
    throw UserError(
        "settings: with text_to_text the encoder reads both ways and the decoder forward; leave model.causal out");
  }
  if (config.train.init.empty()) {
    models::apply_preset(config.model, settings);
    if (is_text_to_text(config)) models::apply_preset(config.text_to_text, config.model, settings);
  } else {
    take_encoder_settings(config, settings);
  }
}

void require_possible(const RunConfig& config) {
  require_possible(config.train);
  if (is_recall(config)) data::require_possible(config.recall);
  models::require_attention_possible(config.model);
}

std::string to_toml(const RunConfig& config) {
  RunConfig copy = config;
  Settings settings;
  add_settings(settings, copy);
  return settings.toml();
}

models::InputConfig input_of(const data::TaskData& task) {
  const data::DatasetInfo& info = task.train->info();
  models::InputConfig input;
  const bool values = task.reading == data::Reading::kValues ||
                      (task.reading == data::Reading::kAsContent && info.content == data::Content::kValues);
  input.vocabulary = values ? 0 : info.vocabulary;
  input.max_length = task.max_length;
  input.pairs = info.pairs;
  input.image_width = info.width;
  input.image_height = info.height;
  input.value_scale = info.value_scale;
  input.classes = info.classes;
  input.blank = values ? 0 : data::kFirstToken;
  return input;
}

}  // namespace cosformer::runs
