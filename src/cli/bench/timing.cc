#include "cli/bench/timing.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace cosformer::cli {

Timing timing_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times[std::min(times.size() - 1, times.size() * 9 / 10)]};
}

std::string spread_of(const Timing& t) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "-%.0f/+%.0f%%", 100 * (1 - t.min_ms / t.median_ms),
                100 * (t.p90_ms / t.median_ms - 1));
  return text.data();
}

}  // namespace cosformer::cli
