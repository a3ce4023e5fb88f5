// A run as a folder: what was asked for, what came out, and everything needed to go on.
//
//   config.toml         the effective settings
//   checkpoints/        the last two (checkpoint.h)
//   best.safetensors    the weights that did best on the validation part, the model's config in their metadata
//   metrics.jsonl       losses and evaluations by step
//   tensorboard/        the same for TensorBoard
//   data.json           what the data hold, class by class (data_record.h)
//   log.txt             what was printed
//   tokenizer           where texts are read as tokens of a language model: what makes them
//   result.json         the end: what the test part gives
#pragma once

#include <memory>
#include <string>

#include "base/files/file_descriptor.h"
#include "data/corpus/language_config.h"
#include "data/tasks/task.h"
#include "models/classifier.h"
#include "models/language/language_model.h"
#include "models/text_to_text/encoder_decoder.h"
#include "train/train_config.h"

namespace cosformer::train {

struct RunConfig {
  data::DataConfig data;
  data::LanguageDataConfig text;  // with the task lm or mlm; the tokenizer's also with text_to_text
  models::ModelConfig model;
  models::LanguageOptions language;  // likewise
  models::DecoderOptions seq2seq;    // with the task text_to_text
  TrainConfig train;
};

// All settings of a run, without what the data decide ("input.*").
void add_settings(Settings& settings, RunConfig& config);

// What the attention's name and the task imply, for settings that nobody has set. Throws UserError where a setting
// contradicts the task.
void apply_presets(RunConfig& config, const Settings& settings);

// Throws UserError where settings do not go together.
void require_possible(const RunConfig& config);

// Whether the run is of a language model.
bool is_language(const RunConfig& config);
// Whether it is of an encoder-decoder.
bool is_text_to_text(const RunConfig& config);

std::string to_toml(const RunConfig& config);

bool is_run(const std::string& folder);

// Makes the folder and writes config.toml; a folder that holds something else than a run is refused.
void create_run(const std::string& folder, const RunConfig& config);
// Replaces the settings of a run. For who holds its lock.
void write_settings(const std::string& folder, const RunConfig& config);
// Removes what processes that were killed while they wrote one of the run's files have left. For who holds its lock.
void remove_unfinished(const std::string& folder);
// Of a run's folder, or of its bundle (models/run_bundle.h), which every function here that only reads takes in its
// place. Throws UserError when it is neither.
RunConfig read_run(const std::string& folder);

// One process at a time trains in a folder: the lock is held for the object's lifetime. Throws UserError when another
// process holds it.
class RunLock {
 public:
  explicit RunLock(const std::string& folder);

 private:
  FileDescriptor file_;
};

std::string best_weights_path(const std::string& folder);
std::string trained_weights_path(const std::string& folder);  // throws UserError where there are none

// What the data make of the model's input.
models::InputConfig input_of(const data::TaskData& task);

// The trained model of a run: its best weights so far. Throws UserError when there are none yet, and for a run of
// another kind.
std::shared_ptr<models::Classifier> load_trained(const std::string& folder);
std::shared_ptr<models::LanguageModel> load_trained_language_model(const std::string& folder);
std::shared_ptr<models::EncoderDecoder> load_trained_encoder_decoder(const std::string& folder);

}  // namespace cosformer::train
