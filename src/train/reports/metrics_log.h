// metrics.jsonl: one JSON object a line, in the order of the steps; and the same numbers for TensorBoard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/files/appended_file.h"
#include "train/reports/tensorboard.h"

namespace cosformer::train {

// Calls use(step, entry, line) for each line of RUN/metrics.jsonl, from the first to the last; none where there is no
// such file. A torn last line is left out. Throws UserError when it is not as it was written.
using UseMetrics = std::function<void(std::int64_t step, const nlohmann::json& entry, std::string_view line)>;
void for_each_metrics(const std::string& run, const UseMetrics& use);

class MetricsLog {
 public:
  // Appends to RUN/metrics.jsonl. Lines of steps after `step` (of a process that was killed) and a torn last line are
  // removed first. Throws Failure.
  MetricsLog(const std::string& run, std::int64_t step);

  using Values = std::vector<std::pair<std::string, double>>;
  void write(std::int64_t step, const Values& values);

 private:
  std::optional<AppendedFile> file_;
  EventFile events_;
};

}  // namespace cosformer::train
