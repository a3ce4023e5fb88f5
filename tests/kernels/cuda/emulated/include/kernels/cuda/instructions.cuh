// The instructions of kernels/cuda/instructions.cuh on the emulated device.
#pragma once

#include <cstdint>
#include <cstring>

#include <cuda_runtime.h>

#include "../../../instructions.h"
#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {

// --- Shared memory.

inline std::uint32_t shared_address(const void* p) {
  return emulated::shared_address(p);
}
#define COSFORMER_SHARED(type, name)                                                               \
  type& name = []() -> type& {                                                                     \
    static const char variable = 0; /* whose address tells it from others */                       \
    return *static_cast<type*>(emulated::shared_variable(&variable, sizeof(type), alignof(type))); \
  }()
#define COSFORMER_LAUNCHED_SHARED(name, alignment) unsigned char* const name = emulated::shared_memory()
template <class T>
T& shared_as(std::uint32_t address) {
  return *reinterpret_cast<T*>(emulated::shared_at(address, sizeof(T)));
}
inline uint4 load_shared_16(std::uint32_t address) {
  return shared_as<uint4>(address);
}
inline uint2 load_shared_8(std::uint32_t address) {
  return shared_as<uint2>(address);
}
inline float2 load_shared_pair(std::uint32_t address) {
  return shared_as<float2>(address);
}
inline void store_shared_16(std::uint32_t address, const uint4& x) {
  shared_as<uint4>(address) = x;
}
inline void store_shared_4(std::uint32_t address, std::uint32_t x) {
  shared_as<std::uint32_t>(address) = x;
}
inline void store_shared_2(std::uint32_t address, std::uint32_t x) {
  shared_as<std::uint16_t>(address) = static_cast<std::uint16_t>(x);
}
inline void store_shared_float(std::uint32_t address, float x) {
  shared_as<float>(address) = x;
}

// --- Global memory.

inline void store_global_16(void* address, const uint4& x) {
  *static_cast<uint4*>(address) = x;
}
inline void store_release(unsigned* address, unsigned x) {
  emulated::store_release(address, x);
}
inline unsigned load_acquire(const unsigned* address) {
  return emulated::load_acquire(address);
}

// --- Copies: read at once, and written when they are waited for; NaN until then.

template <int kBytes>
void copy_async(std::uint32_t shared, const void* global, bool valid) {
  static_assert(kBytes == 16 || kBytes == 4);
  emulated::Bytes<kBytes> bytes{};
  if (valid) bytes = *static_cast<const emulated::Bytes<kBytes>*>(global);
  emulated::begin_copy(shared, &bytes, kBytes);
  std::memset(emulated::shared_at(shared, kBytes), 0xff, kBytes);
}
inline void commit_copies() {
  emulated::commit_copies();
}
template <int kPending>
void wait_copies() {
  emulated::wait_copies(kPending);
}

// --- Barriers.

template <int kThreads>
void sync_named_barrier(int barrier) {
  emulated::meet(barrier, kThreads);
}
template <int kBarrier, int kThreads>
void sync_named_barrier() {
  emulated::meet(kBarrier, kThreads);
}
template <int kBarrier, int kThreads>
void arrive_at_named_barrier() {
  emulated::arrive(kBarrier, kThreads);
}

// --- Two numbers in a register.

inline std::uint32_t pack_bf16(float low, float high) {
  return static_cast<std::uint32_t>(to_bfloat16(low).bits) | static_cast<std::uint32_t>(to_bfloat16(high).bits) << 16;
}
inline std::uint32_t pack_f16(float low, float high) {
  return static_cast<std::uint32_t>(to_float16(low).bits) | static_cast<std::uint32_t>(to_float16(high).bits) << 16;
}
template <class F>
std::uint32_t of_bf16_pairs(std::uint32_t a, std::uint32_t b, F f) {
  const auto low = [](std::uint32_t x) { return __uint_as_float(x << 16); };
  const auto high = [](std::uint32_t x) { return __uint_as_float(x & 0xffff0000U); };
  return pack_bf16(f(low(a), low(b)), f(high(a), high(b)));
}
inline std::uint32_t add_pair(std::uint32_t a, std::uint32_t b) {
  return of_bf16_pairs(a, b, [](float x, float y) { return x + y; });
}
inline std::uint32_t multiply_pair(std::uint32_t a, std::uint32_t b) {
  return of_bf16_pairs(a, b, [](float x, float y) { return x * y; });
}
inline std::uint32_t multiply_pair_relu(std::uint32_t a, std::uint32_t b) {
  return of_bf16_pairs(a, b, [](float x, float y) { return fmaxf(x * y, 0.0F); });
}
inline std::uint32_t relu_pair(std::uint32_t a) {
  return of_bf16_pairs(a, 0, [](float x, float) { return fmaxf(x, 0.0F); });
}

// --- The matrix unit.

inline std::uint32_t tf32_of(float x) {  // to nearest, ties away from zero
  const std::uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return bits & 0xffffe000U;
  return (bits + 0x1000U) & 0xffffe000U;
}
inline void multiply_tf32(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  emulated::multiply_tf32(c, a, b);
}
inline void multiply_f16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  emulated::multiply_f16(c, a, b);
}
inline void multiply_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  emulated::multiply_bf16(c, a, b);
}
inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t row) {
  const uint4 own = shared_as<uint4>(row);
  emulated::spread_rows(&own, r, false);
}
inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t row) {
  const uint4 own = shared_as<uint4>(row);
  emulated::spread_rows(&own, r, true);
}
inline void load_matrices_transposed(std::uint32_t (&r)[2], std::uint32_t row) {
  uint4 own{};
  if (emulated::own_lane() < 16) own = shared_as<uint4>(row);
  std::uint32_t all[4];
  emulated::spread_rows(&own, all, true);
  r[0] = all[0];
  r[1] = all[1];
}

// --- What the compiler is kept from knowing.

inline int anew(int x) {
  return x;
}
inline void forget(int&, int&, int&, int&) {}
inline void forget(float&) {}
inline void hold(float&, float&) {}

}  // namespace cosformer::kernels::cuda
