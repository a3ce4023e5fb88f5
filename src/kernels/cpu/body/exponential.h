// exp of a vector. In float32 from a polynomial; in float64 the C library's.
#pragma once

#include "kernels/cpu/body/vector.h"

namespace cosformer::kernels::cpu {
namespace {

// exp(x) = 2^n·exp(r), n whole and |r| ≤ ln(2)/2. NaN stays NaN; results run out into infinity and zero, by way of the
// subnormals, since 2^n is multiplied in two halves.
COSFORMER_INLINE Vector<float> exponential(Vector<float> x) {
  typedef int32_t Bits __attribute__((vector_size(COSFORMER_VECTOR_BYTES)));
  constexpr float kRounder = 0x1.8p23F;  // adding it rounds to a whole number, which its lowest bits then hold
  constexpr int32_t kRounderBits = 0x4b400000;
  constexpr float kLeast = -104.0F, kMost = 89.0F;
  const Vector<float> zero = {};
  x = x < kLeast ? zero + kLeast : x;
  x = x > kMost ? zero + kMost : x;
  const Vector<float> shifted = x * 0x1.715476p+0F + kRounder, n = shifted - kRounder;
  const Vector<float> r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // ln 2 in two parts, the first exact in n·
  Vector<float> p = r * (1.0F / 5040) + (1.0F / 720);
  p = p * r + (1.0F / 120);
  p = p * r + (1.0F / 24);
  p = p * r + (1.0F / 6);
  p = p * r + 0.5F;
  p = p * (r * r) + r;
  p = p + 1.0F;
  const Bits whole = reinterpret_cast<Bits>(shifted) - kRounderBits;
  const Bits half = whole >> 1, rest = whole - half;
  return p * reinterpret_cast<Vector<float>>((half + 127) << 23) * reinterpret_cast<Vector<float>>((rest + 127) << 23);
}

COSFORMER_INLINE Vector<double> exponential(Vector<double> x) {
  double lanes[kLanes<double>];
  store(lanes, x);
  for (double& lane : lanes) lane = ::exp(lane);
  return load(lanes);
}

}  // namespace
}  // namespace cosformer::kernels::cpu
