// How the matrix unit's accumulators round, and what the host plays it with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

// For functions that do nothing but add products of whole arrays, where most of the device's time goes. Sanitizers,
// which would look at each of the numbers, leave them out. Without one they are compiled twice, for any x86-64 and for
// AVX2, whose registers are twice as wide, with the same results. (With one, the loader's choice between the two would
// hang: it comes before the address sanitizer is ready.)
#if defined(__SANITIZE_ADDRESS__)
#define COSFORMER_ADDS_PRODUCTS __attribute__((noinline, no_sanitize("address,undefined")))
#elif defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define COSFORMER_ADDS_PRODUCTS __attribute__((target_clones("avx2", "default")))
#else
#define COSFORMER_ADDS_PRODUCTS
#endif

namespace emulated {

// Towards zero.
inline float cut_off(double x) {
  const auto nearest = static_cast<float>(x);
  if (!(std::fabs(static_cast<double>(nearest)) > std::fabs(x))) return nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1);
}

// As memcpy, whose calls for a number of bytes that only the running program knows go to a sanitizer's own.
inline void copy_few(void* to, const void* from, std::size_t bytes) {
  switch (bytes) {
    case 2: std::memcpy(to, from, 2); break;
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    case 16: std::memcpy(to, from, 16); break;
    default: std::memcpy(to, from, bytes);
  }
}

}  // namespace emulated
