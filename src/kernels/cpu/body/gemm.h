// The small matrix products that the attention is made of: c = scale·c + a·b with c and b in rows of whole vectors.
//
// Tiles of c stay in registers; a is read one number at a time and broadcast, so it may as well be stored transposed.
#pragma once

#include "kernels/cpu/body/ahead.h"
#include "kernels/cpu/scratch.h"

namespace cosformer::kernels::cpu {
namespace {

// Which part of a product a triangle leaves: a range of the summed index k for a tile whose first row is m0 and first
// column is n0, or whole tiles.
enum class Band {
  kAll,
  kUpToRow,       // k ≤ row
  kFromRow,       // k ≥ row
  kUpToColumn,    // k ≤ column
  kFromColumn,    // k ≥ column
  kTilesUpToRow,  // only tiles with an element whose column ≤ row
  kTilesFromRow,  // only tiles with an element whose column ≥ row
};

// How a lies in memory: [m, k] or [k, m].
enum class Layout { kRows, kColumns };

template <class T>
struct Product {
  const T* a;
  Index a_stride;
  const T* b;
  Index b_stride;
  T* c;
  Index c_stride;
  Index m, n, k;
  T scale;  // 0 does not read c
  Band band;
  Ahead* ahead = nullptr;  // rows to fetch meanwhile
  HalfPanels half = {};    // where factors are rounded to bf16, null: they are not (half_gemm.h)
  // Factors that lie in panels already; null: they are rounded and packed from a and b.
  const std::uint16_t* packed_a = nullptr;
  const std::uint16_t* packed_b = nullptr;
};

// Longer sums are added up in parts, since rounding errors grow with the length of a chain; not so where c is added to,
// which would only be rounded more often. Precision is what float64 is asked for; in float32 parts cost time.
template <class T>
constexpr Index kLongestSum = sizeof(T) == sizeof(double) ? 8 : 32;

// Not inlined: what a caller keeps in registers across the loop would push a row of b out of them.
template <class T, Layout kLayout, int kRows, int kVectors>
__attribute__((noinline)) void multiply_tile(const Product<T>& p, Index m0, Index n0, Index k_begin, Index k_end,
                                             T scale) {
  Vector<T> sums[kRows][kVectors] = {};
  const T* b = p.b + k_begin * p.b_stride + n0;
  const T* a = kLayout == Layout::kRows ? p.a + m0 * p.a_stride + k_begin : p.a + k_begin * p.a_stride + m0;
  for (Index k = k_begin; k < k_end; ++k) {
    Vector<T> row[kVectors];
    COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) row[v] = load(b + v * kLanes<T>);
    COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) {
      const T factor = kLayout == Layout::kRows ? a[r * p.a_stride] : a[r];
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * row[v];
    }
    b += p.b_stride;
    a += kLayout == Layout::kRows ? 1 : p.a_stride;
  }
  T* c = p.c + m0 * p.c_stride + n0;
  if (scale == 0) {
    COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) {
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) store(c + r * p.c_stride + v * kLanes<T>, sums[r][v]);
    }
  } else {
    COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) {
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
        T* here = c + r * p.c_stride + v * kLanes<T>;
        store(here, load(here) * scale + sums[r][v]);
      }
    }
  }
}

template <class T, Layout kLayout, int kRows, int kVectors>
void multiply_rows(const Product<T>& p, Index m0, Index m1, Index n0) {
  for (; m0 + kRows <= m1; m0 += kRows) {
    const Index width = kVectors * kLanes<T>;
    Index k_begin = 0, k_end = p.k;
    switch (p.band) {
      case Band::kAll: break;
      case Band::kUpToRow: k_end = m0 + kRows < p.k ? m0 + kRows : p.k; break;
      case Band::kFromRow: k_begin = m0 < p.k ? m0 : p.k; break;
      case Band::kUpToColumn: k_end = n0 + width < p.k ? n0 + width : p.k; break;
      case Band::kFromColumn: k_begin = n0 < p.k ? n0 : p.k; break;
      case Band::kTilesUpToRow:
        if (n0 >= m0 + kRows) continue;
        break;
      case Band::kTilesFromRow:
        if (n0 + width <= m0) continue;
        break;
    }
    if (p.ahead != nullptr) p.ahead->step();
    T scale = p.scale;
    do {
      const Index k_stop = p.scale == 0 && k_end - k_begin > kLongestSum<T> ? k_begin + kLongestSum<T> : k_end;
      multiply_tile<T, kLayout, kRows, kVectors>(p, m0, n0, k_begin, k_stop, scale);
      k_begin = k_stop;
      scale = 1;
    } while (k_begin < k_end);
  }
}

template <class T, Layout kLayout, int kVectors>
void multiply_columns(const Product<T>& p, Index n0) {
  constexpr int kFit = COSFORMER_TILE_REGISTERS / kVectors;
  constexpr int kRows = kFit > 8 ? 8 : kFit;
  Index m0 = 0, m1 = p.m / kRows * kRows;
  // Two rows left, as of chunks and states, would leave the multipliers waiting: 4 + 4 in place of 6 + 2.
  if (kRows == 6 && p.m - m1 == 2 && m1 > 0) m1 -= kRows;
  multiply_rows<T, kLayout, kRows, kVectors>(p, m0, m1, n0);
  m0 = m1;
  if constexpr (kRows > 4) {
    m1 = m0 + (p.m - m0) / 4 * 4;
    multiply_rows<T, kLayout, 4, kVectors>(p, m0, m1, n0);
    m0 = m1;
  }
  if constexpr (kRows > 2) {
    m1 = m0 + (p.m - m0) / 2 * 2;
    multiply_rows<T, kLayout, 2, kVectors>(p, m0, m1, n0);
    m0 = m1;
  }
  multiply_rows<T, kLayout, 1, kVectors>(p, m0, p.m, n0);
}

template <Layout kLayout, class T>
void multiply_full(const Product<T>& p) {
  constexpr int kMost = COSFORMER_TILE_REGISTERS >= 24 ? 4 : 2;
  Index vectors = p.n / kLanes<T>, n0 = 0;
  while (vectors > 0) {
    // A last column of one vector alone would leave the multipliers waiting: share with the one before.
    Index take = vectors < kMost ? vectors : kMost;
    if (vectors == kMost + 1 && kMost > 2) take = kMost - 1;
    if constexpr (kMost == 4) {
      if (take == 4) multiply_columns<T, kLayout, 4>(p, n0);
      if (take == 3) multiply_columns<T, kLayout, 3>(p, n0);
    }
    if (take == 2) multiply_columns<T, kLayout, 2>(p, n0);
    if (take == 1) multiply_columns<T, kLayout, 1>(p, n0);
    n0 += take * kLanes<T>;
    vectors -= take;
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
