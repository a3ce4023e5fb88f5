// What one thread of the embedding's rows does: some neighbouring numbers of one token. The same text also runs on a
// host, piece after piece, where it is tested.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/lanes.h"

namespace cosformer::kernels::cuda {

template <class Stored>
struct RowsToEmbed {
  std::int64_t tokens, width, rows;
  const std::int64_t* ids;
  const Stored *table, *x;
  Stored* y;
};

// Pieces are numbered token by token; the width is a multiple of kLanes.
template <class Io, int kLanes>
COSFORMER_ITEM void embed_piece(const RowsToEmbed<typename Io::Stored>& p, std::int64_t piece) {
  constexpr std::int64_t kFewPieces = 0xffffffff;
  const std::int64_t row_pieces = p.width / kLanes;
  if (piece >= p.tokens * row_pieces) return;
  // 64-bit divisions are slow, and seldom needed.
  const std::int64_t token = piece <= kFewPieces
                                 ? static_cast<std::uint32_t>(piece) / static_cast<std::uint32_t>(row_pieces)
                                 : piece / row_pieces;
  const std::int64_t column = (piece - token * row_pieces) * kLanes, id = p.ids[token];
  float y[kLanes];
  if (id >= 0 && id < p.rows) {
    load_lanes<Io, kLanes>(p.table + id * p.width + column, y);
  } else {
    COSFORMER_UNROLL
    for (int l = 0; l < kLanes; ++l) y[l] = NAN;
  }
  if (p.x != nullptr) {
    float x[kLanes];
    load_lanes<Io, kLanes>(p.x + token * p.width + column, x);
    COSFORMER_UNROLL
    for (int l = 0; l < kLanes; ++l) y[l] += x[l];
  }
  store_lanes<Io, kLanes>(y, p.y + token * p.width + column);
}

}  // namespace cosformer::kernels::cuda
