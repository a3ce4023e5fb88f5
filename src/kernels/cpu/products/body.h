// The body of row products, compiled once per instruction set.
//
// As many sums are kept in registers as a vector has lanes: of R rows of x by lanes/R rows of w. Each is a vector that
// is added up along k, and then over its lanes in one fixed tree, so that the shape of the tile leaves no trace in the
// bits.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/cpu/body/vector.h"
#include "kernels/cpu/products/row_products.h"

namespace cosformer::kernels::cpu {
namespace {

// The last numbers of a row that do not fill a vector, and zeros.
COSFORMER_INLINE Vector<float> load_end(const float* p, Index count) {
  float lanes[kLanes<float>] = {};
  for (Index at = 0; at < count; ++at) lanes[at] = p[at];
  return load(lanes);
}

// a·b + c with one rounding, where the instruction set has that. Said so, because the compiler, which may contract the
// sum or not, chose one in one shape of the tile and the other in another.
COSFORMER_INLINE Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__) && COSFORMER_VECTOR_BYTES == 64
  return (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__) && COSFORMER_VECTOR_BYTES == 32
  return (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

template <int kRows>
void multiply_tile(const RowProducts& p, Index row, Index column, Index columns) {
  constexpr Index kColumns = kLanes<float> / kRows;
  const float *x[kRows], *w[kColumns];
  COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) x[r] = p.x + (row + r) * p.k;
  COSFORMER_UNROLL for (int c = 0; c < kColumns; ++c) w[c] = p.w + (column + (c < columns ? c : 0)) * p.k;
  Vector<float> sums[kLanes<float>] = {};
  const Index whole = p.k / kLanes<float> * kLanes<float>;
  const auto add = [&](auto read, Index at) __attribute__((always_inline)) {
    Vector<float> own[kRows];
    COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) own[r] = read(x[r] + at);
    COSFORMER_UNROLL for (int c = 0; c < kColumns; ++c) {
      const Vector<float> weight = read(w[c] + at);
      COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) sums[r * kColumns + c] =
          multiply_add(own[r], weight, sums[r * kColumns + c]);
    }
  };
  for (Index at = 0; at < whole; at += kLanes<float>) {
    add(
        [](const float* from) __attribute__((always_inline)) { return load(from); }, at);
  }
  if (whole < p.k) {
    add(
        [&](const float* from) __attribute__((always_inline)) { return load_end(from, p.k - whole); }, whole);
  }
  float results[kLanes<float>];
  store(results, sum_lanes<float, kLanes<float> / 2>(sums));
  for (Index r = 0; r < kRows; ++r) {
    float* out = p.out + (row + r) * p.columns + column;
    for (Index c = 0; c < columns; ++c) {
      out[c] = results[r * kColumns + c] + (p.bias != nullptr ? p.bias[column + c] : 0.0F);
    }
  }
}

template <int kRows>
Index multiply_while(const RowProducts& p, Index row, Index begin, Index end) {
  constexpr Index kColumns = kLanes<float> / kRows;
  const Index last = row + (p.rows - row) / kRows * kRows;
  // A few rows of w stay near while all of x goes by.
  for (Index column = begin; column < end; column += kColumns) {
    const Index columns = end - column < kColumns ? end - column : kColumns;
    for (Index at = row; at < last; at += kRows) multiply_tile<kRows>(p, at, column, columns);
  }
  return last;
}

void multiply_rows_here(const RowProducts& p, std::int64_t begin, std::int64_t end) {
  constexpr int kRows = kLanes<float> >= 16 ? 4 : 2;
  const Index row = multiply_while<kRows>(p, 0, begin, end);
  multiply_while<1>(p, row, begin, end);
}

}  // namespace
}  // namespace cosformer::kernels::cpu
