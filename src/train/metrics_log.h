// metrics.jsonl: one JSON object a line, in the order of the steps; and the same numbers for TensorBoard.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/tensorboard.h"

namespace cosformer::train {

class MetricsLog {
 public:
  // Appends to RUN/metrics.jsonl. Lines of steps after `step` (of a process that was killed) and a torn last line are
  // removed first. Throws Failure.
  MetricsLog(const std::string& run, std::int64_t step);

  using Values = std::vector<std::pair<std::string, double>>;
  void write(std::int64_t step, const Values& values);

 private:
  std::string path_;
  EventFile events_;
};

}  // namespace cosformer::train
