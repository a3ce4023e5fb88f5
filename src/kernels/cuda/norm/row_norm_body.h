// What a team of lanes does for the rows it is given. A thread of a GPU speaks for one lane of its team; a host speaks
// for all of them at once and so runs the same text, where it is tested. `Team` says which:
//   kLanes                how many lanes share a row
//   kHeld                 for how many of them this thread speaks: one, or all
//   lane(h)               which they are
//   sum(parts, totals)    for each row the sum over all lanes, by halves, the same bits in every lane
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/lanes.h"

namespace cosformer::kernels::cuda {

struct RowNormSizes {
  std::int64_t rows, width;
  float eps;
  bool centered;  // LayerNorm; RMSNorm otherwise
};

// Rows of kLanes · kGroups · kPack numbers, kRows of them at a time, all in registers. Lane n has the numbers
// (g · kLanes + n) · kPack and on: neighbouring lanes read neighbouring memory.
template <class Team_, int kGroups_, int kPack_, int kRows_>
struct RowLayout {
  using Team = Team_;
  static constexpr int kGroups = kGroups_, kPack = kPack_, kRows = kRows_;
  static constexpr int kNumbers = kGroups * kPack, kWidth = Team::kLanes * kNumbers;
  using Numbers = float[kRows][Team::kHeld][kNumbers];
  static COSFORMER_ANYWHERE constexpr int column(int lane, int group) { return (group * Team::kLanes + lane) * kPack; }
};

template <int kRows>
struct RowStatistics {
  float mean[kRows], inverse[kRows];  // inverse = 1 / √(variance + eps)
};

// Numbers of rows beyond the last are zeros.
template <class Io, class Layout>
COSFORMER_ITEM void load_rows(const typename Layout::Team& team, std::int64_t rows, const typename Io::Stored* from,
                              std::int64_t first, typename Layout::Numbers& to) {
  COSFORMER_UNROLL
  for (int r = 0; r < Layout::kRows; ++r) {
    COSFORMER_UNROLL
    for (int h = 0; h < Layout::Team::kHeld; ++h) {
      COSFORMER_UNROLL
      for (int g = 0; g < Layout::kGroups; ++g) {
        float pack[Layout::kPack] = {};
        if (first + r < rows) {
          load_lanes<Io, Layout::kPack>(from + (first + r) * Layout::kWidth + Layout::column(team.lane(h), g), pack);
        }
        COSFORMER_UNROLL
        for (int l = 0; l < Layout::kPack; ++l) to[r][h][g * Layout::kPack + l] = pack[l];
      }
    }
  }
}

// In two passes over the registers: a difference of large sums would lose the digits of rows far from zero.
template <class Layout>
COSFORMER_ITEM RowStatistics<Layout::kRows> statistics_of(const typename Layout::Team& team, const RowNormSizes& s,
                                                          const typename Layout::Numbers& x) {
  constexpr int kRows = Layout::kRows, kHeld = Layout::Team::kHeld;
  constexpr auto kWidth = static_cast<float>(Layout::kWidth);
  RowStatistics<kRows> result{};
  float part[kRows][kHeld];
  if (s.centered) {
    COSFORMER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      COSFORMER_UNROLL
      for (int h = 0; h < kHeld; ++h) {
        part[r][h] = 0;
        COSFORMER_UNROLL
        for (int n = 0; n < Layout::kNumbers; ++n) part[r][h] += x[r][h][n];
      }
    }
    team.sum(part, result.mean);
    COSFORMER_UNROLL
    for (int r = 0; r < kRows; ++r) result.mean[r] /= kWidth;
  }
  COSFORMER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    COSFORMER_UNROLL
    for (int h = 0; h < kHeld; ++h) {
      part[r][h] = 0;
      COSFORMER_UNROLL
      for (int n = 0; n < Layout::kNumbers; ++n) {
        const float difference = x[r][h][n] - result.mean[r];
        part[r][h] += difference * difference;
      }
    }
  }
  team.sum(part, result.inverse);
  COSFORMER_UNROLL
  for (int r = 0; r < kRows; ++r) result.inverse[r] = 1.0F / sqrtf(result.inverse[r] / kWidth + s.eps);
  return result;
}

// y of the rows from `first`; without a bias where that is null.
template <class XIo, class YIo, class Layout>
COSFORMER_ITEM void normalize_rows(const typename Layout::Team& team, const RowNormSizes& s,
                                   const typename XIo::Stored* x, const float* weight, const float* bias,
                                   typename YIo::Stored* y, std::int64_t first) {
  constexpr int kPack = Layout::kPack;
  typename Layout::Numbers values;
  load_rows<XIo, Layout>(team, s.rows, x, first, values);
  const RowStatistics<Layout::kRows> row = statistics_of<Layout>(team, s, values);
  COSFORMER_UNROLL
  for (int h = 0; h < Layout::Team::kHeld; ++h) {
    COSFORMER_UNROLL
    for (int g = 0; g < Layout::kGroups; ++g) {
      const int column = Layout::column(team.lane(h), g);
      float w[kPack], b[kPack] = {}, result[kPack];
      load_lanes<StoredFloats, kPack>(weight + column, w);
      if (bias != nullptr) load_lanes<StoredFloats, kPack>(bias + column, b);
      COSFORMER_UNROLL
      for (int r = 0; r < Layout::kRows; ++r) {
        if (first + r >= s.rows) break;
        COSFORMER_UNROLL
        for (int l = 0; l < kPack; ++l) {
          result[l] = (values[r][h][g * kPack + l] - row.mean[r]) * row.inverse[r] * w[l] + b[l];
        }
        store_lanes<YIo, kPack>(result, y + (first + r) * Layout::kWidth + column);
      }
    }
  }
}

// A lane's share of the weights' gradients, over all rows its team has seen.
template <class Layout>
struct WeightSums {
  float weight[Layout::Team::kHeld][Layout::kNumbers], bias[Layout::Team::kHeld][Layout::kNumbers];
};

// dx of the rows from `first`, which are added to `sums`. With x̂ = (x − mean) · inverse and g = dy · weight:
//   dx = inverse (g − mean(g) − x̂ mean(g x̂))      without mean(g) where rows are not centred
// The statistics are computed again from x, which is in registers anyway: to keep them would be bytes written and read.
template <class XIo, class YIo, class Layout>
COSFORMER_ITEM void differentiate_rows(const typename Layout::Team& team, const RowNormSizes& s,
                                       const typename XIo::Stored* x, const typename YIo::Stored* dy,
                                       const float* weight, typename XIo::Stored* dx, std::int64_t first,
                                       WeightSums<Layout>& sums) {
  constexpr int kRows = Layout::kRows, kHeld = Layout::Team::kHeld, kPack = Layout::kPack;
  constexpr auto kWidth = static_cast<float>(Layout::kWidth);
  typename Layout::Numbers normal, gradient;
  load_rows<XIo, Layout>(team, s.rows, x, first, normal);
  load_rows<YIo, Layout>(team, s.rows, dy, first, gradient);
  RowStatistics<kRows> row = statistics_of<Layout>(team, s, normal);
  COSFORMER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= s.rows) row.inverse[r] = 0;  // not infinite with eps = 0: rows that are not there add zeros
  }
  float products[kRows][kHeld] = {}, plain[kRows][kHeld] = {};
  COSFORMER_UNROLL
  for (int h = 0; h < kHeld; ++h) {
    COSFORMER_UNROLL
    for (int g = 0; g < Layout::kGroups; ++g) {
      float w[kPack];
      load_lanes<StoredFloats, kPack>(weight + Layout::column(team.lane(h), g), w);
      COSFORMER_UNROLL
      for (int r = 0; r < kRows; ++r) {
        COSFORMER_UNROLL
        for (int l = 0; l < kPack; ++l) {
          float &unit = normal[r][h][g * kPack + l], &slope = gradient[r][h][g * kPack + l];
          unit = (unit - row.mean[r]) * row.inverse[r];
          sums.weight[h][g * kPack + l] += slope * unit;
          sums.bias[h][g * kPack + l] += slope;
          slope *= w[l];
          products[r][h] += slope * unit;
          plain[r][h] += slope;
        }
      }
    }
  }
  float along[kRows], level[kRows] = {};
  team.sum(products, along);
  if (s.centered) team.sum(plain, level);
  COSFORMER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= s.rows) break;
    along[r] /= kWidth;
    level[r] /= kWidth;
    COSFORMER_UNROLL
    for (int h = 0; h < kHeld; ++h) {
      COSFORMER_UNROLL
      for (int g = 0; g < Layout::kGroups; ++g) {
        float result[kPack];
        COSFORMER_UNROLL
        for (int l = 0; l < kPack; ++l) {
          const int n = g * kPack + l;
          result[l] = row.inverse[r] * (gradient[r][h][n] - level[r] - normal[r][h][n] * along[r]);
        }
        store_lanes<XIo, kPack>(result, dx + (first + r) * Layout::kWidth + Layout::column(team.lane(h), g));
      }
    }
  }
}

}  // namespace cosformer::kernels::cuda
