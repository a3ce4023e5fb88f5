// Repeated times of one thing, summed up: what every bench reports.
#pragma once

#include <string>
#include <vector>

namespace cosformer::cli {

struct Timing {
  double median_ms = 0, min_ms = 0, p90_ms = 0;
};

// Of at least one time, in milliseconds, in any order.
Timing timing_of(std::vector<double> times);

// "-3/+12%": from the median to the fastest and to the ninth of ten.
std::string spread_of(const Timing& timing);

}  // namespace cosformer::cli
