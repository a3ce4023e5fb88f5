#include "train/optimiser/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cosformer::train {

double Schedule::at(std::int64_t step) const {
  const auto t = static_cast<double>(step - begin), w = static_cast<double>(std::max<std::int64_t>(warmup, 1));
  const double top = kind == "rsqrt" ? peak / std::sqrt(w) : peak;  // at the end of the warm-up
  if (from > 0 && t < static_cast<double>(warmup)) return from + (top - from) * t / w;
  if (kind == "rsqrt") return peak * std::min(1.0, t / w) / std::sqrt(std::max(t, w));
  if (t < static_cast<double>(warmup)) return peak * t / w;
  if (kind == "constant") return peak;
  const double left = std::max<double>(static_cast<double>(steps - warmup), 1);
  const double done = std::clamp((t - static_cast<double>(warmup)) / left, 0.0, 1.0);
  const double share = kind == "linear" ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  return final + (peak - final) * share;
}

}  // namespace cosformer::train
