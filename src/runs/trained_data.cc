#include "runs/trained_data.h"

#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "runs/checkpoint.h"

namespace cosformer::runs {
namespace {

namespace fs = std::filesystem;

std::string named_in_weights(const std::string& run) {
  const std::string path = best_weights_path(run);
  if (!fs::exists(path)) return "";
  const safetensors::Reader file(path);
  const auto found = file.metadata().find("cosformer.data");
  return found == file.metadata().end() ? "" : found->second;
}

}  // namespace

std::string trained_data_name(const std::string& run) {
  const std::string name = named_in_weights(run);
  if (!name.empty()) return name;
  const std::optional<TrainState> state = newest_state(run);  // runs of older versions say it there alone
  return state ? state->data_name : "";
}

SameData is_trained_on(const std::string& run, const std::string& data_name) {
  const std::string trained = trained_data_name(run);
  if (trained.empty()) return SameData::kUnknown;
  return trained == data_name ? SameData::kYes : SameData::kNo;
}

void require_data_there(const std::string& run, const RunConfig& config) {
  std::error_code unknown;
  if (config.data.path.empty() || fs::exists(config.data.path, unknown)) return;
  throw UserError(fmt::format("the data of '{}' are not at '{}' (seen from '{}'); say where they are now with --data",
                              run, config.data.path, fs::current_path(unknown).string()));
}

void move_data(const std::string& run, const std::string& path) {
  RunConfig config = read_run(run);
  if (config.data.path == path) return;
  config.data.path = path;
  write_settings(run, config);
}

}  // namespace cosformer::runs
