// How the gradient of an embedding is shared out, and what one lane of a warp does. No lane needs another, so that the
// same text also runs on a host, lane after lane, where it is tested.
//
// A warp owns some tokens (a part), some rows of the table (a window) and 32 columns, one for each lane. It keeps its
// window in shared memory and adds the tokens in their order.
#pragma once

#include <cstdint>

#include "kernels/cuda/lanes.h"

namespace cosformer::kernels::cuda {

constexpr int kWarpLanes = 32;
constexpr std::int64_t kWindowRows = 384;       // 48 KB of shared memory
constexpr std::int64_t kWantedWarps = 132 * 6;  // six to a multiprocessor of an H200, where their windows leave room
constexpr std::int64_t kLeastPartTokens = 128;
constexpr int kTokensAtOnce = 32;  // whose loads are under way together

struct EmbeddingSizes {
  std::int64_t tokens, width, rows;
  std::int64_t parts, part_tokens, windows, window_rows, slices;
};

// A function of shapes alone. Several parts together are no larger than dy.
COSFORMER_ANYWHERE inline EmbeddingSizes embedding_sizes(std::int64_t tokens, std::int64_t width, std::int64_t rows) {
  EmbeddingSizes s{tokens, width, rows, 1, tokens, 1, rows, 1};
  if (rows == 0 || width == 0) return s;
  s.windows = parts_of(rows, kWindowRows);
  s.window_rows = parts_of(rows, s.windows);
  s.slices = parts_of(width, kWarpLanes);
  const auto at_most = [&](std::int64_t limit) { s.parts = s.parts < limit ? s.parts : limit; };
  s.parts = parts_of(kWantedWarps, s.windows * s.slices);
  at_most(tokens / kLeastPartTokens);
  at_most(tokens / rows);
  s.parts = s.parts > 1 ? s.parts : 1;
  s.part_tokens = parts_of(tokens, s.parts);
  return s;
}

COSFORMER_ANYWHERE inline std::int64_t embedding_warps(const EmbeddingSizes& s) {
  return s.parts * s.windows * s.slices;
}

// `window`: [window_rows][kWarpLanes], the lane's own column of it.
template <class Io>
COSFORMER_ITEM void embedding_gradient_lane(const EmbeddingSizes& s, const std::int64_t* ids,
                                            const typename Io::Stored* dy, float* partial, std::int64_t warp, int lane,
                                            float* window) {
  const std::int64_t part = warp / (s.windows * s.slices), rest = warp % (s.windows * s.slices);
  const std::int64_t first_row = rest / s.slices * s.window_rows, column = rest % s.slices * kWarpLanes + lane;
  if (column >= s.width) return;
  const std::int64_t rows = s.rows - first_row < s.window_rows ? s.rows - first_row : s.window_rows;
  for (std::int64_t row = 0; row < rows; ++row) window[row * kWarpLanes + lane] = 0.0F;
  const std::int64_t begin = part * s.part_tokens;
  const std::int64_t end = begin + s.part_tokens < s.tokens ? begin + s.part_tokens : s.tokens;
  for (std::int64_t token = begin; token < end; token += kTokensAtOnce) {
    int row[kTokensAtOnce];  // −1: not of this window
    float value[kTokensAtOnce];
    COSFORMER_UNROLL
    for (int i = 0; i < kTokensAtOnce; ++i) {
      const std::int64_t at = token + i < end ? ids[token + i] - first_row : -1;
      row[i] = at >= 0 && at < rows ? static_cast<int>(at) : -1;
    }
    COSFORMER_UNROLL
    for (int i = 0; i < kTokensAtOnce; ++i) {
      value[i] = row[i] >= 0 ? Io::load(dy[(token + i) * s.width + column]) : 0.0F;
    }
    COSFORMER_UNROLL
    for (int i = 0; i < kTokensAtOnce; ++i) {
      if (row[i] >= 0) window[row[i] * kWarpLanes + lane] += value[i];
    }
  }
  float* to = partial + (part * s.rows + first_row) * s.width + column;
  for (std::int64_t row = 0; row < rows; ++row) to[row * s.width] = window[row * kWarpLanes + lane];
}

}  // namespace cosformer::kernels::cuda
