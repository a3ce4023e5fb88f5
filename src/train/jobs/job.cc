#include "train/jobs/job.h"

#include <stdexcept>

#include <fmt/core.h>

namespace cosformer::train {

double PartResult::at(const std::string& name) const {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  throw std::out_of_range(fmt::format("there is no metric '{}'", name));
}

bool Decision::prefers(double value, double loss, std::optional<double> best, std::optional<double> best_loss) const {
  if (!best) return true;
  if (value == *best) return best_loss && loss < *best_loss;
  return higher_is_better ? value > *best : value < *best;
}

std::string part_name(Part part) {
  return part == Part::kTrain ? "train" : part == Part::kValid ? "valid" : "test";
}

std::string listed(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const std::uint64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::int64_t Job::parameter_count() {
  std::int64_t count = 0;
  for (const at::Tensor& p : module().parameters()) count += p.numel();
  return count;
}

}  // namespace cosformer::train
