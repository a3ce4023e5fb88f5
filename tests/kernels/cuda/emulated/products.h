// How the matrix unit's accumulators round.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace emulated {

// Towards zero.
inline float cut_off(double x) {
  const auto nearest = static_cast<float>(x);
  if (!(std::fabs(static_cast<double>(nearest)) > std::fabs(x))) return nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1);
}

}  // namespace emulated
