#include "cli/compare/compare_speed.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/bench/train_bench.h"
#include "cli/command.h"
#include "cli/terminal/child_process.h"
#include "runs/device.h"
#include "train/interrupt.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

// Of what the system could still give: the rest is for everybody else.
constexpr double kMemoryShare = 0.9;
constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Whether a setting is one of those that bench train takes.
bool is_of_model(const std::string& key) {
  return key.starts_with("attention.") || key.starts_with("model.pattern");
}

// What every measurement has in common.
std::vector<std::string> shared_arguments(const CompareConfig& config) {
  runs::RunConfig run;
  Settings settings;
  runs::add_settings(settings, run);
  settings.read_values(config.settings);
  settings.read_values(config.tasks.front().file);
  for (const std::string& assignment : config.tasks.front().assignments) settings.assign(assignment);
  for (const std::string& assignment : config.assignments) settings.assign(assignment);
  const models::ModelConfig& m = run.model;
  const std::string device = runs::device_of(run.train).is_cuda() ? "cuda" : "cpu";
  std::vector<std::string> arguments{"--causal",       m.causal ? "yes" : "no",
                                     "--batch",        std::to_string(config.speed.batch),
                                     "--width",        std::to_string(m.width),
                                     "--layers",       std::to_string(m.layers),
                                     "--heads",        std::to_string(m.heads),
                                     "--feed-forward", std::to_string(m.feed_forward),
                                     "--precision",    config.speed.precision,
                                     "--device",       device,
                                     "--threads",      std::to_string(at::get_num_threads()),
                                     "--seconds",      number_text(config.speed.seconds),
                                     "--most-seconds", number_text(config.speed.step_seconds)};
  for (const TomlValue& value : config.settings) {
    if (!is_of_model(value.key)) continue;
    std::string text;  // a list, as of model.pattern, has several
    for (const std::string& item : value.items) text += (text.empty() ? "" : ",") + item;
    arguments.insert(arguments.end(), {"--set", value.key + "=" + text});
  }
  for (const std::string& assignment : config.assignments) {
    if (is_of_model(assignment)) arguments.insert(arguments.end(), {"--set", assignment});
  }
  return arguments;
}

// The settings of measurements are kept beside them, so that no table mixes two.
void require_same_settings(const fs::path& folder, const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += argument + (argument.rfind("--", 0) == 0 ? " " : "\n");
  const std::string path = (folder / "settings.txt").string();
  if (fs::exists(path)) {
    if (read_regular_file(path, kMostBytes) == text) return;
    throw UserError(
        fmt::format("'{}' has speeds that were measured with other settings (settings.txt tells them); give those of "
                    "before, or another folder with --out",
                    folder.string()));
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw file_failure("make the folder", folder.string(), error.value());
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

bool take_measurement(const std::string& path, SpeedPoint& point) {
  if (!fs::exists(path)) return false;
  const std::string text = read_regular_file(path, kMostBytes, "a measurement");
  nlohmann::json line;
  try {
    line = parse_json(text, path);
  } catch (const UserError&) {
    return false;  // of a process that was killed: it is measured again
  }
  if (!line.is_object()) return false;
  point.skipped = json_string(line, "skipped", "", path);
  if (!point.skipped.empty()) return true;
  point.train_steps_per_s = json_number(line, "steps_per_s", 0, path);
  point.inference_steps_per_s = json_number(line, "inference_steps_per_s", 0, path);
  point.peak_bytes = json_number(line, "peak_bytes", 0, path);
  point.parameters = json_whole(line, "parameters", 0, path);
  return true;
}

void keep_reason(const std::string& path, const SpeedPoint& point) {
  const std::string text =
      nlohmann::json{{"attention", point.attention}, {"length", point.length}, {"skipped", point.skipped}}.dump() +
      "\n";
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

class SpeedMeasurement {
 public:
  SpeedMeasurement(const CompareConfig& config, fs::path folder)
      : config_(config), folder_(std::move(folder)), shared_(shared_arguments(config)) {
    std::sort(lengths_.begin(), lengths_.end());
    require_same_settings(folder_, shared_);
  }

  std::vector<SpeedPoint> all() {
    std::vector<SpeedPoint> points;
    Progress progress("speed", static_cast<long long>(config_.models.size() * lengths_.size()), "measurements");
    const train::InterruptScope interrupts;
    for (std::size_t model = 0; model < config_.models.size(); ++model) {
      std::string gave_up;
      for (const long long length : lengths_) {
        SpeedPoint point{config_.models[model].name, config_.models[model].attention, length, 0, 0, 0, 0, gave_up};
        progress.note(fmt::format("{} N={}", point.name, with_commas(length)));
        if (gave_up.empty()) measure(config_.models[model], point, [&] { progress.advance(0); });
        if (!point.skipped.empty() && gave_up.empty()) {
          gave_up = fmt::format("from {} tokens on: {}", with_commas(length), point.skipped);
          point.skipped = gave_up;
        }
        points.push_back(point);
        progress.advance();
      }
    }
    return points;
  }

 private:
  void measure(const ComparedModel& model, SpeedPoint& point, const std::function<void()>& watch) {
    std::string name = model.name + "-" + std::to_string(point.length);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '/' || c == ' ' || c == ','; }, '-');
    const std::string json = (folder_ / (name + ".json")).string(), output = (folder_ / (name + ".txt")).string();
    if (take_measurement(json, point)) return;
    std::vector<std::string> arguments{
        "bench", "train", "--attention", model.attention, "--lengths", std::to_string(point.length), "--json", json};
    arguments.insert(arguments.end(), shared_.begin(), shared_.end());
    for (const std::string& assignment : model.assignments) {  // how it is trained does not matter here
      if (is_of_model(assignment)) arguments.insert(arguments.end(), {"--set", assignment});
    }
    const bool on_cpu = !torch::cuda::is_available();  // a GPU's driver reserves more than there is
    fs::remove(output);
    const ChildEnd end = run_child(
        {arguments, output, config_.speed.process_seconds, on_cpu ? kMemoryShare * available_memory() : 0}, watch);
    if (end.interrupted) throw Interrupted{};
    if (end.exit_code == 0 && take_measurement(json, point)) return;
    point.skipped = end.timed_out ? fmt::format("took more than {} s", number_text(config_.speed.process_seconds))
                                  : explain(end, output);
    keep_reason(json, point);
  }

  const CompareConfig& config_;
  fs::path folder_;
  std::vector<std::string> shared_;
  std::vector<long long> lengths_ = config_.speed.lengths;
};

}  // namespace

std::vector<SpeedPoint> measure_speed(const CompareConfig& config, const std::string& folder) {
  return SpeedMeasurement(config, fs::path(folder) / "speed").all();
}

}  // namespace cosformer::cli
