// What a run is asked for: its settings, and the kind of model that follows from them.
#pragma once

#include <string>

#include "base/settings.h"
#include "data/corpus/language_config.h"
#include "data/tasks/recall/recall_config.h"
#include "data/tasks/task.h"
#include "models/classifier.h"
#include "models/language/language_model.h"
#include "models/text_to_text/encoder_decoder.h"
#include "runs/train_config.h"

namespace cosformer::runs {

struct RunConfig {
  data::DataConfig data;
  // With the task lm or mlm; the tokenizer's settings also with text_to_text, data.tokenizer with classifiers of texts.
  data::LanguageDataConfig text;
  models::ModelConfig model;
  data::RecallConfig recall;            // with the task recall
  models::LanguageOptions language;     // with the tasks lm, mlm and recall
  models::DecoderOptions text_to_text;  // with the task text_to_text
  TrainConfig train;
};

// All settings of a run, without what the data decide ("input.*").
void add_settings(Settings& settings, RunConfig& config);

// What the attention's name and the task imply, for settings that nobody has set. Throws UserError where a setting
// contradicts the task.
void apply_presets(RunConfig& config, const Settings& settings);

// Throws UserError where settings do not go together.
void require_possible(const RunConfig& config);

// What is trained follows from the task.
enum class Kind { kClassifier, kLanguageModel, kTextToText, kRecall };
Kind kind_of(const RunConfig& config);
// Autoregressive or masked.
inline bool is_language(const RunConfig& config) {
  return kind_of(config) == Kind::kLanguageModel;
}
inline bool is_text_to_text(const RunConfig& config) {
  return kind_of(config) == Kind::kTextToText;
}
inline bool is_recall(const RunConfig& config) {
  return kind_of(config) == Kind::kRecall;
}

std::string to_toml(const RunConfig& config);

// What the data make of the model's input.
models::InputConfig input_of(const data::TaskData& task);

}  // namespace cosformer::runs
