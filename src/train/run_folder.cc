#include "train/run_folder.h"

#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/formats/safetensors.h"
#include "models/language/language_model_file.h"
#include "models/model_size.h"
#include "models/run_bundle.h"
#include "models/trained_weights.h"
#include "train/checkpoint.h"
#include "train/initial_weights.h"

namespace cosformer::train {
namespace {

namespace fs = std::filesystem;

constexpr double kHeldOutText = 0.05;  // texts are long: less is enough

std::string config_path(const std::string& folder) {
  return (fs::path(folder) / "config.toml").string();
}

}  // namespace

void add_settings(Settings& settings, RunConfig& config) {
  data::add_settings(settings, config.data);
  data::add_settings(settings, config.text);
  models::add_settings(settings, config.model, false);
  models::add_settings(settings, config.language);
  models::add_settings(settings, config.seq2seq);
  add_settings(settings, config.train);
}

bool is_language(const RunConfig& config) {
  return data::is_language_task(config.data.task);
}

bool is_text_to_text(const RunConfig& config) {
  return config.data.task == "text_to_text";
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
  if (is_text_to_text(config) && config.model.causal) {
    throw UserError(
        "settings: with text_to_text the encoder reads both ways and the decoder forward; leave model.causal out");
  }
  if (config.train.init.empty()) {
    models::apply_preset(config.model, settings);
    if (is_text_to_text(config)) models::apply_preset(config.seq2seq, config.model, settings);
  } else {
    take_encoder_settings(config, settings);
  }
}

void require_possible(const RunConfig& config) {
  require_possible(config.train);
  nn::require_possible(config.model.attention, config.model.causal);
  nn::require_positions_possible(config.model.attention, config.model.positions);
}

std::string to_toml(const RunConfig& config) {
  RunConfig copy = config;
  Settings settings;
  add_settings(settings, copy);
  return settings.toml();
}

bool is_run(const std::string& folder) {
  return fs::is_regular_file(config_path(folder));
}

void create_run(const std::string& folder, const RunConfig& config) {
  std::error_code error;
  if (fs::is_directory(folder)) remove_temporaries(config_path(folder));  // of a process killed while it did this
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder))) {
    throw UserError("'" + folder + "' exists and is not a run; choose another folder with --out");
  }
  fs::create_directories(folder, error);
  if (error) throw file_failure("make the folder", folder, error.value());
  write_settings(folder, config);
}

void write_settings(const std::string& folder, const RunConfig& config) {
  const std::string text = to_toml(config);
  AtomicFile file(config_path(folder));
  file.write(text.data(), text.size());
  file.commit();
}

void remove_unfinished(const std::string& folder) {
  for (const char* name : {"config.toml", "best.safetensors", "metrics.jsonl", "result.json", "tokenizer"}) {
    remove_temporaries((fs::path(folder) / name).string());
  }
  remove_unfinished_checkpoints(folder);
}

RunConfig read_run(const std::string& folder) {
  if (models::is_file(folder)) {
    RunConfig config;
    Settings settings;
    add_settings(settings, config);
    settings.read_toml(models::read_bundle(folder).settings, folder);
    return config;
  }
  if (!is_run(folder)) {
    throw UserError("'" + folder + "' is not a run: it has no config.toml; cosformer train makes runs");
  }
  RunConfig config;
  Settings settings;
  add_settings(settings, config);
  settings.read_toml_file(config_path(folder));
  if (!settings.was_set("data.task")) {
    throw UserError("'" + config_path(folder) +
                    "' is not as it was written: it does not say data.task; begin a new run");
  }
  return config;
}

RunLock::RunLock(const std::string& folder) {
  const std::string path = (fs::path(folder) / ".lock").string();
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_.is_open()) throw file_failure("open", path, errno);
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    throw UserError("another process is training in '" + folder + "'; wait for it or choose another folder");
  }
}

std::string best_weights_path(const std::string& folder) {
  if (models::is_file(folder)) return folder;
  return (fs::path(folder) / "best.safetensors").string();
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

std::string trained_weights_path(const std::string& folder) {
  if (!models::is_file(folder)) read_run(folder);  // a folder that is no run is called that
  const std::string path = best_weights_path(folder);
  if (fs::exists(path)) return path;
  if (checkpoint_steps(folder).empty() && fs::exists(fs::path(folder) / "result.json")) {
    throw UserError("'" + folder + "' has lost its trained weights (best.safetensors), and its checkpoints too; copy " +
                    "the file back from where the folder was made, or train a new run with another --out");
  }
  throw UserError("'" + folder + "' has no trained weights (best.safetensors); cosformer train --resume " + folder +
                  " makes them at its next evaluation (with --data, where its data have moved)");
}

namespace {

// Throws UserError that says what the file holds instead and what asks it.
void require_kind(const std::string& folder, const std::string& path, const std::string& wanted) {
  const bool is_lm = models::is_language_model(path), is_pair = models::is_encoder_decoder(path);
  const std::string found = is_lm ? "language model" : is_pair ? "text-to-text model" : "classifier";
  if (found == wanted) return;
  // A masked model neither continues texts nor answers them.
  const bool is_masked = is_lm && read_run(folder).data.task == "mlm";
  throw UserError("'" + folder + "' is a " + (is_masked ? "masked " : "") + found + ", not a " + wanted +
                  "; cosformer eval " + folder + " tells how good it is" +
                  (is_masked ? ", and cosformer train --task text_files --data FILE --set train.init=" + folder +
                                   " begins a classifier as it"
                   : is_lm ? ", and cosformer generate " + folder + " continues texts"
                           : ", and cosformer predict " + folder + " --input FILE asks it"));
}

}  // namespace

std::shared_ptr<models::Classifier> load_trained(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "classifier");
  const safetensors::Reader file(path);
  const auto found = file.metadata().find("cosformer.model");
  if (found == file.metadata().end()) {
    throw UserError("'" + path + "' does not tell its model ('cosformer.model' is missing from its metadata)");
  }
  const models::ModelConfig config = models::model_config_from_toml(found->second, path);
  models::require_numbers(file, models::size_of(config, config.layers));
  auto model = std::make_shared<models::Classifier>(config);
  models::load_trained_weights(path, *model);
  return model;
}

std::shared_ptr<models::LanguageModel> load_trained_language_model(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "language model");
  return models::load_language_model(path);
}

std::shared_ptr<models::EncoderDecoder> load_trained_encoder_decoder(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "text-to-text model");
  return models::load_encoder_decoder(path);
}

}  // namespace cosformer::train
