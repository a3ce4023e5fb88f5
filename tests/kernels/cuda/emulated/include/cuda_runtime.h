// What the kernels use of CUDA's language, for the emulated device.
#pragma once

#include <bit>

#include "../machine.h"
#include "cuda_runtime_api.h"

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

#define COSFORMER_MIN_MAX(type)               \
  inline constexpr type min(type a, type b) { \
    return b < a ? b : a;                     \
  }                                           \
  inline constexpr type max(type a, type b) { \
    return a < b ? b : a;                     \
  }
COSFORMER_MIN_MAX(int)
COSFORMER_MIN_MAX(unsigned)
COSFORMER_MIN_MAX(long)
COSFORMER_MIN_MAX(long long)
COSFORMER_MIN_MAX(unsigned long)
#undef COSFORMER_MIN_MAX

inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 |
                               static_cast<std::uint32_t>(low));
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline void sincospif(float x, float* sine, float* cosine) {
  constexpr double kPi = 3.14159265358979323846;
  *sine = static_cast<float>(std::sin(kPi * x));
  *cosine = static_cast<float>(std::cos(kPi * x));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(bytes >> (8 * (selector >> (4 * i) & 7U)) & 0xffU) << (8 * i);
  }
  return result;
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}
template <class T>
void __stcs(T* p, const T& x) {
  *p = x;
}

inline void __syncthreads() {
  emulated::meet_all();
}
inline void __syncwarp() {
  emulated::sync_warp();
}

namespace emulated {

// In the instructions' own file, since lanes look into each other's variables there.
void shuffle(const void* value, void* result, std::size_t bytes, int from);
template <class T>
T shuffle(T value, int from) {
  T result = value;
  shuffle(&value, &result, sizeof(T), from);
  return result;
}
inline int own_lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

}  // namespace emulated

template <class T>
T __shfl_sync(unsigned /*mask*/, T value, int lane) {
  return emulated::shuffle(value, lane % 32);
}
template <class T>
T __shfl_xor_sync(unsigned /*mask*/, T value, int bits) {
  return emulated::shuffle(value, emulated::own_lane() ^ bits);
}
template <class T>
T __shfl_down_sync(unsigned /*mask*/, T value, int by) {
  const int lane = emulated::own_lane();
  return emulated::shuffle(value, lane + by < 32 ? lane + by : lane);
}
