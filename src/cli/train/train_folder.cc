#include "cli/train/train_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

// What a data file may end in; twice, as in texts.jsonl.gz.
constexpr std::array kEndings{".gz", ".tsv", ".csv", ".jsonl", ".json", ".txt", ".text"};

bool holds_own_data(const std::string& task) {
  constexpr std::array kTasks{"text_files",      "text_pairs",      "text_to_text", "idx_images", "png_images",
                              "token_sequences", "value_sequences", "lm",           "mlm"};
  return std::find(kTasks.begin(), kTasks.end(), task) != kTasks.end();
}

// Of "data/reviews.tsv" reviews; empty where there is none.
std::string name_of_data(const std::string& path) {
  fs::path file = fs::absolute(path).lexically_normal();
  if (file.filename().empty()) file = file.parent_path();  // "folder/"
  std::string name = file.filename().string();
  for (int times = 0; times < 2; ++times) {
    const std::string ending = fs::path(name).extension().string();
    if (std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end()) name.resize(name.size() - ending.size());
  }
  // Whatever a shell or a later option could take for something else.
  for (char& c : name) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '*' || c == '?') c = '_';
  }
  return name;
}

// Settings that make the model, or the order of the data, in which the run is to go on.
bool is_kept(const std::string& key) {
  constexpr std::array kTrain{"train.init",         "train.seed",       "train.continued",   "train.batch_size",
                              "train.token_budget", "train.accumulate", "train.fixed_width", "train.width_multiple"};
  constexpr std::array kData{"data.path", "data.valid_path", "data.test_path", "data.skip_bad_rows"};
  if (key.starts_with("train.")) return std::find(kTrain.begin(), kTrain.end(), key) != kTrain.end();
  return std::find(kData.begin(), kData.end(), key) == kData.end();
}

}  // namespace

std::string default_folder(const runs::RunConfig& config) {
  std::string name;
  if (holds_own_data(config.data.task) && !config.data.path.empty()) name = name_of_data(config.data.path);
  const std::string attention = config.model.pattern.empty() ? config.model.attention.name : "hybrid";
  return fmt::format("runs/{}-{}-{}", name.empty() ? config.data.task : name, attention, config.train.seed);
}

train::TrainRequest continuation_of(const std::string& run, const std::vector<Assignment>& changes) {
  train::TrainRequest request;
  request.run = run;
  request.config = runs::read_run(run);
  request.continues = true;
  Settings settings;
  runs::add_settings(settings, request.config);
  for (const Assignment& change : changes) {
    if (change.key.empty()) {
      settings.assign(change.value);
    } else {
      settings.set(change.key, change.value, change.where);
    }
  }
  for (const Settings::Description& d : settings.descriptions()) {
    if (settings.was_set(d.key) && is_kept(d.key)) {
      throw UserError(fmt::format("--continue keeps {} as the run has it; begin a new run to change it", d.key));
    }
  }
  for (const char* key : {"data.path", "data.valid_path", "data.test_path"}) {
    request.names_data = request.names_data || settings.was_set(key);
  }
  // Epochs that are asked for count, and so do those of other data, unless steps are asked for.
  const bool counts_epochs = request.names_data || settings.was_set("train.epochs");
  if (counts_epochs && !settings.was_set("train.steps")) request.config.train.steps = 0;
  runs::require_possible(request.config);
  return request;
}

}  // namespace cosformer::cli
