// Stores past the caches, for results too large to be found there again: the old lines are then not read first, which
// is a third of what a forward pass moves (docs/decisions/cpu-kernels.md).
#pragma once

#include "kernels/cpu/body/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace cosformer::kernels::cpu {
namespace {

// Anything smaller is likely to be read again while the second-level cache still holds it.
constexpr Index kStreamedBytes = 2 << 20;
constexpr Index kLineBytes = 64;

// Only whole lines are streamed: parts of one would each go to memory by themselves.
COSFORMER_INLINE bool is_whole_lines(const void* first, Index stride_bytes, Index row_bytes) {
  return (reinterpret_cast<uintptr_t>(first) | static_cast<uintptr_t>(stride_bytes | row_bytes)) % kLineBytes == 0;
}

// `to` is aligned to the size of Bits, a vector type.
template <class Bits>
COSFORMER_INLINE void stream(void* to, Bits x) {
#if defined(__AVX512F__)
  if constexpr (sizeof x == 64) {
    _mm512_stream_si512(static_cast<__m512i*>(to), reinterpret_cast<__m512i>(x));
    return;
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof x == 32) {
    _mm256_stream_si256(static_cast<__m256i*>(to), reinterpret_cast<__m256i>(x));
    return;
  }
#endif
#if defined(__SSE2__)
  if constexpr (sizeof x == 16) {
    _mm_stream_si128(static_cast<__m128i*>(to), reinterpret_cast<__m128i>(x));
    return;
  }
#endif
  __builtin_memcpy(to, &x, sizeof x);
}

// Streamed stores are visible to other threads only after this.
COSFORMER_INLINE void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace
}  // namespace cosformer::kernels::cpu
