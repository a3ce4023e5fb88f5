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

// The two halves of an exchange of blocks of kStep lanes between two rows, the step that transposition and sums across
// lanes are made of.
template <int... kIndices>
struct Indices {};
template <int kCount, int... kRest>
struct CountUpTo : CountUpTo<kCount - 1, kCount - 1, kRest...> {};
template <int... kAll>
struct CountUpTo<0, kAll...> {
  using Type = Indices<kAll...>;
};
template <class T>
using LaneIndices = typename CountUpTo<static_cast<int>(kLanes<T>)>::Type;

template <class T, int kStep, int... kLane>
COSFORMER_INLINE Vector<T> first_blocks(Vector<T> a, Vector<T> b, Indices<kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kStep) == 0 ? kLane : kLane - kStep + int(kLanes<T>))...);
}

template <class T, int kStep, int... kLane>
COSFORMER_INLINE Vector<T> second_blocks(Vector<T> a, Vector<T> b, Indices<kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kStep) == 0 ? kLane + kStep : kLane + int(kLanes<T>))...);
}

template <class T, int kStep>
COSFORMER_INLINE void transpose_block(Vector<T>* rows) {
  if constexpr (kStep > 0) {
    COSFORMER_UNROLL for (int r = 0; r < int(kLanes<T>); ++r) {
      if ((r & kStep) != 0) continue;
      const Vector<T> a = rows[r], b = rows[r + kStep];
      rows[r] = first_blocks<T, kStep>(a, b, LaneIndices<T>{});
      rows[r + kStep] = second_blocks<T, kStep>(a, b, LaneIndices<T>{});
    }
    transpose_block<T, kStep / 2>(rows);
  }
}

// Lane r of the result is the sum over the lanes of rows[r].
template <class T, int kStep>
COSFORMER_INLINE Vector<T> sum_lanes(Vector<T>* rows) {
  if constexpr (kStep == 0) {
    return rows[0];
  } else {
    COSFORMER_UNROLL for (int r = 0; r < kStep; ++r) {
      rows[r] = first_blocks<T, kStep>(rows[r], rows[r + kStep], LaneIndices<T>{}) +
                second_blocks<T, kStep>(rows[r], rows[r + kStep], LaneIndices<T>{});
    }
    return sum_lanes<T, kStep / 2>(rows);
  }
}

// sums[r] = keep·sums[r] + Σ_i x[r][i]·y[r][i] for rows [0, count), count rounded up to whole vectors; y_stride 0: one
// y for all rows; y null: all ones. Lengths are whole vectors from here on; rows are padded with zeros.
template <class T>
void add_row_products(const T* x, Index x_stride, const T* y, Index y_stride, Index count, Index n, T keep, T* sums) {
  for (Index r0 = 0; r0 < count; r0 += kLanes<T>) {
    Vector<T> totals[kLanes<T>];
    COSFORMER_UNROLL for (int r = 0; r < int(kLanes<T>); ++r) {
      const T *x_row = x + (r0 + r) * x_stride, *y_row = y + (r0 + r) * y_stride;
      Vector<T> total = {};
      if (y == nullptr) {
        for (Index i = 0; i < n; i += kLanes<T>) total += load(x_row + i);
      } else {
        for (Index i = 0; i < n; i += kLanes<T>) total += load(x_row + i) * load(y_row + i);
      }
      totals[r] = total;
    }
    Vector<T> result = sum_lanes<T, int(kLanes<T>) / 2>(totals);
    if (keep != 0) result += load(sums + r0) * keep;
    store(sums + r0, result);
  }
}

template <class T>
COSFORMER_INLINE void fill_zero(T* x, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = 0;
}

// Whether n numbers, whole vectors, hold neither an infinity nor a NaN.
template <class T>
bool all_finite(const T* x, Index n) {
  Vector<T> nothing[2] = {};
  for (Index i = 0; i < n; i += kLanes<T>) nothing[i / kLanes<T> % 2] += load(x + i) * T(0);
  T lanes[kLanes<T>];
  store(lanes, nothing[0] + nothing[1]);
  for (const T lane : lanes) {
    if (lane != 0) return false;
  }
  return true;
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

// to [n, to_stride] = the transpose of from [m, from_stride], m and n rounded up to whole vectors.
template <class T>
void transpose(const T* from, Index from_stride, Index m, Index n, T* to, Index to_stride) {
  for (Index i = 0; i < m; i += kLanes<T>) {
    for (Index j = 0; j < n; j += kLanes<T>) {
      Vector<T> rows[kLanes<T>];
      COSFORMER_UNROLL for (int r = 0; r < int(kLanes<T>); ++r) rows[r] = load(from + (i + r) * from_stride + j);
      transpose_block<T, int(kLanes<T>) / 2>(rows);
      COSFORMER_UNROLL for (int r = 0; r < int(kLanes<T>); ++r) store(to + (j + r) * to_stride + i, rows[r]);
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
