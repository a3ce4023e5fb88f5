#include "runs/run_folder.h"

#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "runs/checkpoint.h"
#include "runs/run_bundle.h"

namespace cosformer::runs {
namespace {

namespace fs = std::filesystem;

std::string config_path(const std::string& folder) {
  return (fs::path(folder) / "config.toml").string();
}

}  // namespace

bool is_run(const std::string& folder) {
  return fs::is_regular_file(config_path(folder));
}

void create_run(const std::string& folder, const RunConfig& config) {
  std::error_code error;
  if (fs::is_directory(folder)) remove_temporaries(config_path(folder));  // of a process killed while it did this
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder))) {
    throw UserError(fmt::format("'{}' exists and is not a run; choose another folder with --out", folder));
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
  if (is_file(folder)) {
    RunConfig config;
    Settings settings;
    add_settings(settings, config);
    settings.read_toml(read_bundle(folder).settings, folder);
    return config;
  }
  if (!is_run(folder)) {
    throw UserError(fmt::format("'{}' is not a run: it has no config.toml; cosformer train makes runs", folder));
  }
  RunConfig config;
  Settings settings;
  add_settings(settings, config);
  settings.read_toml_file(config_path(folder));
  if (!settings.was_set("data.task")) {
    throw UserError(
        fmt::format("'{}' is not as it was written: it does not say data.task; begin a new run", config_path(folder)));
  }
  return config;
}

RunLock::RunLock(const std::string& folder) {
  const std::string path = (fs::path(folder) / ".lock").string();
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_.is_open()) throw file_failure("open", path, errno);
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    throw UserError(fmt::format("another process is training in '{}'; wait for it or choose another folder", folder));
  }
}

std::string best_weights_path(const std::string& folder) {
  if (is_file(folder)) return folder;
  return (fs::path(folder) / "best.safetensors").string();
}

std::string trained_weights_path(const std::string& folder) {
  if (!is_file(folder)) read_run(folder);  // a folder that is no run is called that
  const std::string path = best_weights_path(folder);
  if (fs::exists(path)) return path;
  if (checkpoint_steps(folder).empty() && fs::exists(fs::path(folder) / "result.json")) {
    throw UserError(
        fmt::format("'{}' has lost its trained weights (best.safetensors), and its checkpoints too; copy the file back "
                    "from where the folder was made, or train a new run with another --out",
                    folder));
  }
  throw UserError(
      fmt::format("'{}' has no trained weights (best.safetensors); cosformer train --resume {} makes them at its next "
                  "evaluation (with --data, where its data have moved)",
                  folder, folder));
}

}  // namespace cosformer::runs
