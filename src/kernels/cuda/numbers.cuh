// Scalar pieces that every kernel here needs: conversions, feature maps, sums, angles and powers of the decay.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/attention.h"

namespace cosformer::kernels::cuda {

__device__ __forceinline__ float to_float(float x) {
  return x;
}
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float to_float(__half x) {
  return __half2float(x);
}

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// Two neighbours at once; `p` is aligned to both.
__device__ __forceinline__ float2 load_pair(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
__device__ __forceinline__ float2 load_pair(const __nv_bfloat16* p) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
}
__device__ __forceinline__ float2 load_pair(const __half* p) {
  return __half22float2(*reinterpret_cast<const __half2*>(p));
}
__device__ __forceinline__ void store_io_pair(float* p, float2 x) {
  *reinterpret_cast<float2*>(p) = x;
}
__device__ __forceinline__ void store_io_pair(__nv_bfloat16* p, float2 x) {
  *reinterpret_cast<__nv_bfloat162*>(p) = __float22bfloat162_rn(x);
}
__device__ __forceinline__ void store_io_pair(__half* p, float2 x) {
  *reinterpret_cast<__half2*>(p) = __float22half2_rn(x);
}

__device__ __forceinline__ float map_forward(FeatureMap map, float x) {
  switch (map) {
    case FeatureMap::kRelu: return fmaxf(x, 0.0F);
    case FeatureMap::kElu1: return x > 0.0F ? x + 1.0F : expf(x);
    case FeatureMap::kLeakyRelu: return x > 0.0F ? x : x * static_cast<float>(kLeakyReluSlope);
    case FeatureMap::kSilu: return x / (1.0F + expf(-x));
    case FeatureMap::kIdentity: return x;
  }
  return x;
}

__device__ __forceinline__ float map_derivative(FeatureMap map, float x) {
  switch (map) {
    case FeatureMap::kRelu: return x > 0.0F ? 1.0F : 0.0F;
    case FeatureMap::kElu1: return x > 0.0F ? 1.0F : expf(x);
    case FeatureMap::kLeakyRelu: return x > 0.0F ? 1.0F : static_cast<float>(kLeakyReluSlope);
    case FeatureMap::kSilu: {
      const float sigmoid = 1.0F / (1.0F + expf(-x));
      return sigmoid * (1.0F + x * (1.0F - sigmoid));
    }
    case FeatureMap::kIdentity: return 1.0F;
  }
  return 1.0F;
}

// What the 32 threads of a warp hold, added up for all of them.
template <class T>
__device__ __forceinline__ T sum_over_warp(T x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffU, x, offset);
  return x;
}

// A power of two in which numbers up to `largest` stay below 2^15, where float16 has room for some that are 2^29 times
// smaller before it drops digits. None below 2^-40, so that what is added to them finds room in a float.
struct HalfUnit {
  float value, inverse;
};
__device__ __forceinline__ float inverse_of_unit(float unit) {
  return __uint_as_float((254U << 23) - __float_as_uint(unit));
}
__device__ __forceinline__ HalfUnit half_unit_of(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - 14;
  const float unit = __uint_as_float(static_cast<std::uint32_t>(max(exponent, 127 - 40)) << 23);
  return {unit, inverse_of_unit(unit)};
}

struct Turn {
  float cosine, sine;
};

// cos and sin of theta·tokens. The angle is reduced in double, and what its rounding to float drops is put back to
// first order, so that large positions cost no accuracy.
__device__ __forceinline__ Turn turn_of(double theta, double tokens) {
  constexpr double kInversePi = 0.31830988618379067154;
  double half_turns = theta * tokens * kInversePi;
  half_turns -= 2.0 * rint(half_turns * 0.5);
  const float head = static_cast<float>(half_turns);
  const float rest = static_cast<float>((half_turns - head) * 3.14159265358979323846);
  float sine, cosine;
  sincospif(head, &sine, &cosine);
  return {cosine - rest * sine, sine + rest * cosine};
}

// γ^tokens, with 0·(−∞) taken as γ⁰ = 1 and exponents kept where float can hold them. As 2ⁿ·eʳ, |r| ≤ ln 2 / 2, by a
// series that is right to 7e-9: the library's exponential is twice the code, kernels have many copies of this, and code
// that runs once comes from a memory that is busy.
__device__ __forceinline__ float decay_of(float log_decay, float tokens) {
  if (tokens == 0.0F || log_decay == 0.0F) return 1.0F;
  constexpr double kLn2 = 0.69314718055994530942;
  const double x = fmax(fmin(static_cast<double>(log_decay) * tokens, 80.0), -110.0);
  const double n = rint(x * (1.0 / kLn2));
  const double r = fma(n, -kLn2, x);
  constexpr double kFactors[] = {1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0, 1.0};
  double series = 1.0 / 5040;
#pragma unroll
  for (const double factor : kFactors) series = fma(series, r, factor);
  return static_cast<float>(series * __hiloint2double((1023 + static_cast<int>(n)) * (1 << 20), 0));
}

// A position before its angle is taken: whole turns leave it as a whole number.
__device__ __forceinline__ double reduced_position(const std::int64_t* position, std::int64_t period,
                                                   std::int64_t sequence) {
  std::int64_t n = position == nullptr ? 0 : position[sequence];
  if (period > 0) n %= period;
  return static_cast<double>(n);
}

}  // namespace cosformer::kernels::cuda
