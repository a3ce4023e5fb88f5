#include "train/metrics_log.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_descriptor.h"

namespace cosformer::train {
namespace {

// The lines that a run at `step` would have written.
std::string lines_up_to(const std::string& path, std::int64_t step) {
  std::ifstream file(path, std::ios::binary);
  std::string kept, line;
  while (std::getline(file, line)) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || entry["step"].get<std::int64_t>() > step) break;
    kept += line + '\n';
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::string& run, std::int64_t step)
    : path_((std::filesystem::path(run) / "metrics.jsonl").string()),
      events_((std::filesystem::path(run) / "tensorboard").string(), step) {
  const std::string kept = lines_up_to(path_, step);
  AtomicFile file(path_);
  file.write(kept.data(), kept.size());
  file.commit();
}

void MetricsLog::write(std::int64_t step, const Values& values) {
  nlohmann::ordered_json entry{{"step", step}};
  for (const auto& [name, value] : values) {
    if (value == std::floor(value) && std::abs(value) < 1e15) {
      entry[name] = static_cast<std::int64_t>(value);
    } else {
      entry[name] = value;
    }
    events_.scalar(step, name, value);
  }
  const std::string line = entry.dump() + '\n';
  const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.is_open() || ::write(file.number(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw file_failure("write to", path_, errno);
  }
  events_.flush();
}

}  // namespace cosformer::train
