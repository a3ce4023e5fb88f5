// The products of gemm.h for bf16 problems: both factors rounded to bf16, sums in float32.
//
// Factors are packed into panels first: a in rows [m, k], b with each two rows of k interleaved, which is what both the
// dot-product instruction and the tile unit read. Sums, states, row sums and angles stay in float32.
#pragma once

#include "kernels/cpu/body/gemm.h"

#if defined(COSFORMER_BF16_DOT) || defined(COSFORMER_BF16_TILES)

#include <immintrin.h>

namespace cosformer::kernels::cpu {
namespace {

constexpr Index kPanelDepth = 32;  // k is padded to this with zeros
constexpr Index kTileSide = 16;

// 16 numbers from each of two vectors: `first` in the low half.
COSFORMER_INLINE __m512i round_pair(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// a0 … a15, b0 … b15 to a0, b0, a1, b1, …
COSFORMER_INLINE __m512i interleave_halves(__m512i pair) {
  return _mm512_permutexvar_epi16(_mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                                   22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
                                  pair);
}

// [m, k] rows of bf16, m padded to whole tiles (those rows hold anything), k padded with zeros.
template <Layout kLayout>
void pack_left(const Product<float>& p, Index depth, uint16_t* panel) {
  const __m512 zero = _mm512_setzero_ps();
  if constexpr (kLayout == Layout::kRows) {
    for (Index m = 0; m < p.m; ++m) {
      const float* row = p.a + m * p.a_stride;
      for (Index k = 0; k < depth; k += kPanelDepth) {
        __m512 first = _mm512_maskz_loadu_ps(p.k - k >= 16 ? 0xffff : (1U << (p.k - k)) - 1U, row + k);
        __m512 second = zero;
        if (p.k - k > 16) {
          second = _mm512_maskz_loadu_ps(p.k - k >= 32 ? 0xffff : (1U << (p.k - k - 16)) - 1U, row + k + 16);
        }
        _mm512_storeu_si512(panel + m * depth + k, round_pair(first, second));
      }
    }
  } else {
    for (Index k = 0; k < depth; k += kPanelDepth) {
      for (Index m = 0; m < p.m; m += kTileSide) {
        Vector<float> halves[2][kTileSide];
        COSFORMER_UNROLL for (int half = 0; half < 2; ++half) {
          COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) {
            const Index row = k + half * kTileSide + r;
            halves[half][r] = row < p.k ? load(p.a + row * p.a_stride + m) : Vector<float>{};
          }
          transpose_block<float, 8>(halves[half]);
        }
        COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) {
          _mm512_storeu_si512(panel + (m + r) * depth + k, round_pair(reinterpret_cast<__m512>(halves[0][r]),
                                                                      reinterpret_cast<__m512>(halves[1][r])));
        }
      }
    }
  }
}

// [k/2, n, 2]
inline void pack_right(const Product<float>& p, Index depth, uint16_t* panel) {
  for (Index k = 0; k < depth; k += 2) {
    const float* row = p.b + k * p.b_stride;
    for (Index n = 0; n < p.n; n += kTileSide) {
      const __m512 first = k < p.k ? _mm512_loadu_ps(row + n) : _mm512_setzero_ps();
      const __m512 second = k + 1 < p.k ? _mm512_loadu_ps(row + p.b_stride + n) : _mm512_setzero_ps();
      _mm512_storeu_si512(panel + (k / 2 * p.n + n) * 2, interleave_halves(round_pair(first, second)));
    }
  }
}

// The range of k, in whole panel steps, that a band leaves to rows [m0, m1) and columns [n0, n1); empty for a tile that
// is not wanted.
struct DepthRange {
  Index begin, end;
  bool wanted;
};

COSFORMER_INLINE DepthRange depth_range(Band band, Index depth, Index m0, Index m1, Index n0, Index n1) {
  const auto up_to = [depth](Index k) { return k >= depth ? depth : round_up(k, kPanelDepth); };
  const auto from = [depth](Index k) { return k >= depth ? depth : k / kPanelDepth * kPanelDepth; };
  switch (band) {
    case Band::kUpToRow: return {0, up_to(m1), true};
    case Band::kFromRow: return {from(m0), depth, true};
    case Band::kUpToColumn: return {0, up_to(n1), true};
    case Band::kFromColumn: return {from(n0), depth, true};
    case Band::kTilesUpToRow: return {0, depth, n0 < m1};
    case Band::kTilesFromRow: return {0, depth, n1 > m0};
    case Band::kAll: break;
  }
  return {0, depth, true};
}

#if defined(COSFORMER_BF16_TILES)

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Tiles 0 to 3 hold sums of two by two tiles, 4 and 5 rows of a, 6 and 7 columns of b.
class HalfUnit {
 public:
  HalfUnit() {
    const TileConfig config;
    _tile_loadconfig(&config);
  }
  ~HalfUnit() { _tile_release(); }
};

inline void multiply_panels(const Product<float>& p, Index depth, const uint16_t* left, const uint16_t* right) {
  alignas(64) float spare[2 * kTileSide * 2 * kTileSide];
  const Index left_bytes = depth * 2, right_bytes = p.n * 4;
  for (Index m0 = 0; m0 < p.m; m0 += 2 * kTileSide) {
    const bool two_rows = p.m - m0 > kTileSide;
    const Index rows = p.m - m0 < 2 * kTileSide ? p.m - m0 : 2 * kTileSide;
    for (Index n0 = 0; n0 < p.n; n0 += 2 * kTileSide) {
      for (int fetch = 0; p.ahead != nullptr && fetch < 4; ++fetch) p.ahead->step();  // few and large tiles
      const bool two_columns = p.n - n0 > kTileSide;
      const Index columns = two_columns ? 2 * kTileSide : kTileSide;
      const DepthRange range = depth_range(p.band, depth, m0, m0 + rows, n0, n0 + columns);
      if (!range.wanted) continue;
      // Rows that do not fill their tiles pass through a spare block.
      float* c = p.c + m0 * p.c_stride + n0;
      const bool whole = rows == 2 * kTileSide || rows == kTileSide;
      float* sums = whole ? c : spare;
      const Index stride = whole ? p.c_stride : 2 * kTileSide;
      if (!whole && p.scale != 0) {
        for (Index r = 0; r < rows; ++r) {
          for (Index e = 0; e < columns; e += kTileSide) store(spare + r * stride + e, load(c + r * p.c_stride + e));
        }
      }
      if (p.scale == 0) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      } else {
        _tile_loadd(0, sums, stride * 4);
        if (two_columns) _tile_loadd(1, sums + kTileSide, stride * 4);
        if (two_rows) _tile_loadd(2, sums + kTileSide * stride, stride * 4);
        if (two_rows && two_columns) _tile_loadd(3, sums + kTileSide * stride + kTileSide, stride * 4);
      }
      for (Index k = range.begin; k < range.end; k += kPanelDepth) {
        const uint16_t *a = left + m0 * depth + k, *b = right + (k / 2 * p.n + n0) * 2;
        _tile_loadd(4, a, left_bytes);
        _tile_loadd(6, b, right_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if (two_columns) {
          _tile_loadd(7, b + 2 * kTileSide, right_bytes);
          _tile_dpbf16ps(1, 4, 7);
        }
        if (two_rows) {
          _tile_loadd(5, a + kTileSide * depth, left_bytes);
          _tile_dpbf16ps(2, 5, 6);
          if (two_columns) _tile_dpbf16ps(3, 5, 7);
        }
      }
      _tile_stored(0, sums, stride * 4);
      if (two_columns) _tile_stored(1, sums + kTileSide, stride * 4);
      if (two_rows) _tile_stored(2, sums + kTileSide * stride, stride * 4);
      if (two_rows && two_columns) _tile_stored(3, sums + kTileSide * stride + kTileSide, stride * 4);
      if (whole) continue;
      for (Index r = 0; r < rows; ++r) {
        for (Index e = 0; e < columns; e += kTileSide) store(c + r * p.c_stride + e, load(spare + r * stride + e));
      }
    }
  }
}

#else

class HalfUnit {};

template <int kRows, int kVectors>
COSFORMER_INLINE void multiply_panel_tile(const Product<float>& p, Index depth, const uint16_t* left,
                                          const uint16_t* right, Index m0, Index n0) {
  constexpr Index kWidth = kVectors * kTileSide;
  const DepthRange range = depth_range(p.band, depth, m0, m0 + kRows, n0, n0 + kWidth);
  if (!range.wanted) return;
  __m512 sums[kRows][kVectors];
  COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) {
    COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
      const float* c = p.c + (m0 + r) * p.c_stride + n0 + v * kTileSide;
      sums[r][v] = p.scale == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(c);
    }
  }
  for (Index k = range.begin; k < range.end; k += 2) {
    __m512bh columns[kVectors];
    COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
      columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(right + (k / 2 * p.n + n0 + v * kTileSide) * 2));
    }
    COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) {
      int pair;
      __builtin_memcpy(&pair, left + (m0 + r) * depth + k, sizeof pair);
      const __m512bh factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, columns[v]);
      }
    }
  }
  COSFORMER_UNROLL for (int r = 0; r < kRows; ++r) {
    COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(p.c + (m0 + r) * p.c_stride + n0 + v * kTileSide, sums[r][v]);
    }
  }
}

template <int kVectors>
void multiply_panel_columns(const Product<float>& p, Index depth, const uint16_t* left, const uint16_t* right,
                            Index n0) {
  Index m0 = 0;
  for (; m0 + 6 <= p.m; m0 += 6) {
    if (p.ahead != nullptr) p.ahead->step();
    multiply_panel_tile<6, kVectors>(p, depth, left, right, m0, n0);
  }
  for (; m0 + 2 <= p.m; m0 += 2) multiply_panel_tile<2, kVectors>(p, depth, left, right, m0, n0);
  if (m0 < p.m) multiply_panel_tile<1, kVectors>(p, depth, left, right, m0, n0);
}

inline void multiply_panels(const Product<float>& p, Index depth, const uint16_t* left, const uint16_t* right) {
  Index n0 = 0;
  for (; n0 + 4 * kTileSide <= p.n; n0 += 4 * kTileSide) multiply_panel_columns<4>(p, depth, left, right, n0);
  for (; n0 + 2 * kTileSide <= p.n; n0 += 2 * kTileSide) multiply_panel_columns<2>(p, depth, left, right, n0);
  for (; n0 < p.n; n0 += kTileSide) multiply_panel_columns<1>(p, depth, left, right, n0);
}

#endif

template <Layout kLayout>
__attribute__((noinline)) void multiply_half(Product<float> p) {
  const Index depth = round_up(p.k, kPanelDepth);
  if (p.scale != 0 && p.scale != 1) {
    for (Index m = 0; m < p.m; ++m) {
      for (Index n = 0; n < p.n; n += kTileSide) {
        float* c = p.c + m * p.c_stride + n;
        store(c, load(c) * p.scale);
      }
    }
    p.scale = 1;
  }
  if (p.packed_a == nullptr) pack_left<kLayout>(p, depth, p.half.left);
  if (p.packed_b == nullptr) pack_right(p, depth, p.half.right);
  multiply_panels(p, depth, p.packed_a != nullptr ? p.packed_a : p.half.left,
                  p.packed_b != nullptr ? p.packed_b : p.half.right);
}

}  // namespace
}  // namespace cosformer::kernels::cpu

#else

namespace cosformer::kernels::cpu {
namespace {

class HalfUnit {};

}  // namespace
}  // namespace cosformer::kernels::cpu

#endif

namespace cosformer::kernels::cpu {
namespace {

template <Layout kLayout, class T>
void multiply(const Product<T>& p) {
#if defined(COSFORMER_BF16_DOT) || defined(COSFORMER_BF16_TILES)
  if constexpr (sizeof(T) == sizeof(float)) {
    if (p.half.left != nullptr) {
      multiply_half<kLayout>(p);
      return;
    }
  }
#endif
  multiply_full<kLayout>(p);
}

}  // namespace
}  // namespace cosformer::kernels::cpu
