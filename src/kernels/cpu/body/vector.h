// Vectors as wide as the instruction set has them, written with the compilers' own vector types.
//
// Like all of body/: compiled once per instruction set, everything with internal linkage, and nothing from the standard
// library that has inline code, lest the linker keep this set's copy of it for the rest of the program.
#pragma once

#include <math.h>
#include <stdint.h>

#include "kernels/attention.h"

#if !defined(COSFORMER_VECTOR_BYTES) || !defined(COSFORMER_TILE_REGISTERS) || !defined(COSFORMER_CHUNK)
#error "the translation unit of an instruction set defines these before including the body"
#endif

#if defined(__clang__)
#define COSFORMER_UNROLL _Pragma("unroll")
#else
#define COSFORMER_UNROLL _Pragma("GCC unroll 32")
#endif
#define COSFORMER_INLINE inline __attribute__((always_inline))

namespace cosformer::kernels::cpu {
namespace {

using Index = std::int64_t;

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(COSFORMER_VECTOR_BYTES)));
  typedef float Unaligned __attribute__((vector_size(COSFORMER_VECTOR_BYTES), aligned(4), may_alias));
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(COSFORMER_VECTOR_BYTES)));
  typedef double Unaligned __attribute__((vector_size(COSFORMER_VECTOR_BYTES), aligned(8), may_alias));
};

template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
constexpr Index kLanes = COSFORMER_VECTOR_BYTES / static_cast<Index>(sizeof(T));

template <class T>
COSFORMER_INLINE Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::Unaligned*>(p);
}

template <class T>
COSFORMER_INLINE void store(T* p, Vector<T> x) {
  *reinterpret_cast<typename VectorOf<T>::Unaligned*>(p) = x;
}

template <class T>
COSFORMER_INLINE T horizontal_sum(Vector<T> x) {
  T parts[kLanes<T>];
  store(parts, x);
  for (Index half = kLanes<T> / 2; half > 0; half /= 2) {
    for (Index i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

// Lengths are whole vectors from here on; rows are padded with zeros.
template <class T>
COSFORMER_INLINE T dot(const T* x, const T* y, Index n) {
  Vector<T> even = {}, odd = {};
  Index i = 0;
  for (; i + 2 * kLanes<T> <= n; i += 2 * kLanes<T>) {
    even += load(x + i) * load(y + i);
    odd += load(x + i + kLanes<T>) * load(y + i + kLanes<T>);
  }
  if (i < n) even += load(x + i) * load(y + i);
  return horizontal_sum<T>(even + odd);
}

template <class T>
COSFORMER_INLINE void fill_zero(T* x, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = 0;
}

// out = scale·out + Σ_r weights[r]·rows[r]; weights null: all one. scale 0 does not read out.
//
// Four sums at a time, and `out` last: short chains are quick, and a large `out` does not swallow small rows.
template <class T>
void add_rows(const T* rows, Index stride, const T* weights, Index count, Index n, T scale, T* out) {
  for (Index i = 0; i < n; i += kLanes<T>) {
    Vector<T> sums[4] = {};
    const T* row = rows + i;
    Index r = 0;
    for (; r + 4 <= count; r += 4) {
      COSFORMER_UNROLL for (int s = 0; s < 4; ++s) {
        const Vector<T> x = load(row + (r + s) * stride);
        sums[s] += weights == nullptr ? x : x * weights[r + s];
      }
    }
    for (; r < count; ++r) sums[0] += weights == nullptr ? load(row + r * stride) : load(row + r * stride) * weights[r];
    Vector<T> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    if (scale != 0) sum += load(out + i) * scale;
    store(out + i, sum);
  }
}

// to [n, to_stride] = the transpose of from [m, from_stride]
template <class T>
void transpose(const T* from, Index from_stride, Index m, Index n, T* to, Index to_stride) {
  constexpr Index kBlock = 16;
  for (Index i0 = 0; i0 < m; i0 += kBlock) {
    const Index i1 = i0 + kBlock < m ? i0 + kBlock : m;
    for (Index j = 0; j < n; ++j) {
      for (Index i = i0; i < i1; ++i) to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
