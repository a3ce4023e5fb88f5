#include "train/reports/metrics_log.h"

#include <cmath>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"

namespace cosformer::train {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::string path_in(const std::string& run) {
  return (std::filesystem::path(run) / "metrics.jsonl").string();
}

// The lines that a run at `step` would have written.
std::string lines_up_to(const std::string& run, std::int64_t last) {
  std::string kept;
  bool ended = false;
  for_each_metrics(run, [&](std::int64_t step, const nlohmann::json&, std::string_view line) {
    ended = ended || step > last;
    if (!ended) kept += std::string(line) + '\n';
  });
  return kept;
}

}  // namespace

void for_each_metrics(const std::string& run, const UseMetrics& use) {
  const std::string path = path_in(run);
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_regular_file(path, kMostBytes, "a log of metrics");
  std::int64_t number = 1;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++number) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::string name = path + ":" + std::to_string(number);
    const auto entry = parse_json(line, name);
    if (!entry.is_object() || !entry.contains("step")) {
      throw UserError(fmt::format("'{}' is not as it was written: a line must be an object with a 'step'", name));
    }
    use(json_whole(entry, "step", 0, name), entry, line);
  }
}

MetricsLog::MetricsLog(const std::string& run, std::int64_t step)
    : events_((std::filesystem::path(run) / "tensorboard").string(), step) {
  const std::string kept = lines_up_to(run, step);
  AtomicFile file(path_in(run));
  file.write(kept.data(), kept.size());
  file.commit();
  file_.emplace(path_in(run));
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
  file_->append(entry.dump() + '\n');
  events_.flush();
}

}  // namespace cosformer::train
