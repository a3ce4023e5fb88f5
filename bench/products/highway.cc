// The blocking of body/gemm.h, written with Highway's vectors.
#include <hwy/highway.h>

#include "products.h"

namespace cosformer::products {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;
using Index = std::int64_t;

constexpr Index kLanes = HWY_MAX_BYTES / sizeof(float);
static_assert(HWY_MAX_BYTES == COSFORMER_VECTOR_BYTES, "compile with the flags of the instruction set");
constexpr int kRegisters = COSFORMER_TILE_REGISTERS;

struct Product {
  Operands x;
  Index m, n, k;
  float scale;
};

template <bool kTransposed, int kRows, int kVectors>
HWY_NOINLINE void multiply_tile(const Product& p, Index m0, Index n0, Index k_begin, Index k_end, float scale) {
  const Tag tag;
  V sums[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(tag);
  }
  const Index a_stride = kTransposed ? p.m : p.k;
  const float* b = p.x.b + k_begin * p.n + n0;
  const float* a = kTransposed ? p.x.a + k_begin * a_stride + m0 : p.x.a + m0 * a_stride + k_begin;
  for (Index k = k_begin; k < k_end; ++k) {
    V row[kVectors];
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(tag, b + v * kLanes);
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      const V factor = hn::Set(tag, kTransposed ? a[r] : a[r * a_stride]);
#pragma GCC unroll 32
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
    }
    b += p.n;
    a += kTransposed ? a_stride : 1;
  }
  float* c = p.x.c + m0 * p.n + n0;
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < kVectors; ++v) {
      float* here = c + r * p.n + v * kLanes;
      if (scale == 0) {
        hn::StoreU(sums[r][v], tag, here);
      } else {
        hn::StoreU(hn::MulAdd(hn::LoadU(tag, here), hn::Set(tag, scale), sums[r][v]), tag, here);
      }
    }
  }
}

template <bool kTransposed, int kRows, int kVectors>
void multiply_rows(const Product& p, Index m0, Index m1, Index n0) {
  for (; m0 + kRows <= m1; m0 += kRows) {
    float scale = p.scale;
    for (Index k_begin = 0; k_begin < p.k;) {
      const Index k_end = p.scale == 0 && p.k - k_begin > kLongestSum ? k_begin + kLongestSum : p.k;
      multiply_tile<kTransposed, kRows, kVectors>(p, m0, n0, k_begin, k_end, scale);
      k_begin = k_end;
      scale = 1;
    }
  }
}

template <bool kTransposed, int kVectors>
void multiply_columns(const Product& p, Index n0) {
  constexpr int kRows = kRegisters / kVectors > 8 ? 8 : kRegisters / kVectors;
  Index whole = p.m / kRows * kRows;
  if (kRows == 6 && p.m - whole == 2 && whole > 0) whole -= kRows;
  const Index fours = whole + (p.m - whole) / 4 * 4;
  multiply_rows<kTransposed, kRows, kVectors>(p, 0, whole, n0);
  multiply_rows<kTransposed, 4, kVectors>(p, whole, fours, n0);
  multiply_rows<kTransposed, 2, kVectors>(p, fours, p.m, n0);
}

template <bool kTransposed>
void multiply(const Product& p) {
  constexpr int kMost = kRegisters >= 24 ? 4 : 2;
  Index n0 = 0;
  for (; n0 + kMost * kLanes <= p.n; n0 += kMost * kLanes) multiply_columns<kTransposed, kMost>(p, n0);
  for (; n0 + 2 * kLanes <= p.n; n0 += 2 * kLanes) multiply_columns<kTransposed, 2>(p, n0);
}

}  // namespace

void add_highway(const Case& product, std::vector<Contender>& contenders) {
  const auto by = product.a_transposed ? multiply<true> : multiply<false>;
  contenders.push_back({"Highway", [=](const Operands& x) {
                          by({x, product.m, product.n, product.k, product.scale});
                        }});
}

const char* highway_target() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace cosformer::products
