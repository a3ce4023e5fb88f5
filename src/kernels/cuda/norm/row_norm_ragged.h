// Rows of any width and alignment, number by number: what row_norm_body.h does where rows do not fit its registers.
// Rows are read again for every pass, out of the nearest cache.
#pragma once

#include "kernels/cuda/norm/row_norm_body.h"

namespace cosformer::kernels::cuda {

// For each number of a row: visit(held lane, column).
template <class Team, class Visit>
COSFORMER_ITEM void each_column(const Team& team, std::int64_t width, const Visit& visit) {
  for (int h = 0; h < Team::kHeld; ++h) {
    for (std::int64_t column = team.lane(h); column < width; column += Team::kLanes) visit(h, column);
  }
}

// The sum of value(column) over a row.
template <class Team, class Value>
COSFORMER_ITEM float row_sum(const Team& team, std::int64_t width, const Value& value) {
  float part[1][Team::kHeld] = {}, total[1];
  each_column(team, width, [&](int h, std::int64_t column) { part[0][h] += value(column); });
  team.sum(part, total);
  return total[0];
}

template <class XIo, class Team>
COSFORMER_ITEM RowStatistics<1> ragged_statistics(const Team& team, const RowNormSizes& s,
                                                  const typename XIo::Stored* x) {
  const auto width = static_cast<float>(s.width);
  const float mean =
      s.centered ? row_sum(team, s.width, [&](std::int64_t c) { return XIo::load(x[c]); }) / width : 0.0F;
  const float squares = row_sum(team, s.width, [&](std::int64_t c) {
    const float difference = XIo::load(x[c]) - mean;
    return difference * difference;
  });
  return {{mean}, {1.0F / sqrtf(squares / width + s.eps)}};
}

// x and y: one row.
template <class XIo, class YIo, class Team>
COSFORMER_ITEM void normalize_ragged(const Team& team, const RowNormSizes& s, const typename XIo::Stored* x,
                                     const float* weight, const float* bias, typename YIo::Stored* y) {
  const RowStatistics<1> row = ragged_statistics<XIo>(team, s, x);
  each_column(team, s.width, [&](int, std::int64_t c) {
    const float b = bias == nullptr ? 0.0F : bias[c];
    y[c] = YIo::store((XIo::load(x[c]) - row.mean[0]) * row.inverse[0] * weight[c] + b);
  });
}

// x, dy and dx: one row, whose shares are added to the sums of its team, [width] each (bias_sum only where centred).
template <class XIo, class YIo, class Team>
COSFORMER_ITEM void differentiate_ragged(const Team& team, const RowNormSizes& s, const typename XIo::Stored* x,
                                         const typename YIo::Stored* dy, const float* weight, typename XIo::Stored* dx,
                                         float* weight_sum, float* bias_sum) {
  const RowStatistics<1> row = ragged_statistics<XIo>(team, s, x);
  const auto unit = [&](std::int64_t c) { return (XIo::load(x[c]) - row.mean[0]) * row.inverse[0]; };
  const auto slope = [&](std::int64_t c) { return YIo::load(dy[c]) * weight[c]; };
  const auto width = static_cast<float>(s.width);
  const float along = row_sum(team, s.width, [&](std::int64_t c) { return slope(c) * unit(c); }) / width;
  const float level = s.centered ? row_sum(team, s.width, slope) / width : 0.0F;
  each_column(team, s.width, [&](int, std::int64_t c) {
    dx[c] = XIo::store(row.inverse[0] * (slope(c) - level - unit(c) * along));
    weight_sum[c] += YIo::load(dy[c]) * unit(c);
    if (s.centered) bias_sum[c] += YIo::load(dy[c]);
  });
}

}  // namespace cosformer::kernels::cuda
