// How the gradient of an embedding is shared out, and what one lane of a warp does. No lane needs another, so that the
// same text also runs on a host, lane after lane, where it is tested.
//
// Ids are ascending, so tokens of one row of the table stand side by side: a run. A warp takes some neighbouring tokens
// (a chunk) and 32 columns, one for each lane, and adds up run after run. Runs within the chunk are done then; the
// first and the last may be parts of longer ones. Their sums, two of each chunk, are ascending rows again, for the next
// level, until one chunk holds all.
#pragma once

#include <cstdint>

#include "kernels/cuda/lanes.h"

namespace cosformer::kernels::cuda {

constexpr int kWarpLanes = 32;
constexpr std::int64_t kChunkTokens = 64;
constexpr int kAtOnce = 16;  // loads that are under way together

template <class Stored, class FromStored>
struct EmbeddingLevel {
  std::int64_t tokens, width, rows;  // tokens: of this level
  const std::int32_t* ids;           // [tokens], ascending
  const std::int64_t* order;         // [tokens]: the row of `from` with each id; null where they stand side by side
  const FromStored* from;
  Stored* gradient;        // [rows, width]
  float* edges;            // [chunks][first run, last run][width], the rows of the next level
  std::int32_t* edge_ids;  // [chunks][first run, last run], and their ids
};

COSFORMER_ANYWHERE inline std::int64_t embedding_chunks(std::int64_t tokens) {
  return parts_of(tokens, kChunkTokens);
}

COSFORMER_ANYWHERE inline std::int64_t embedding_slices(std::int64_t width) {
  return parts_of(width, kWarpLanes);
}

// Floats (and ids, which are as large) that one level hands to the next.
COSFORMER_ANYWHERE inline std::int64_t embedding_edges(std::int64_t tokens, std::int64_t width) {
  return embedding_chunks(tokens) > 1 ? 2 * embedding_chunks(tokens) * (width + 1) : 0;
}

template <class Io, class FromIo>
COSFORMER_ITEM void sum_chunk_lane(const EmbeddingLevel<typename Io::Stored, typename FromIo::Stored>& p,
                                   std::int64_t warp, int lane) {
  const std::int64_t chunk = warp / embedding_slices(p.width);
  const std::int64_t column = warp % embedding_slices(p.width) * kWarpLanes + lane;
  if (column >= p.width) return;
  const std::int64_t begin = chunk * kChunkTokens;
  const std::int64_t end = begin + kChunkTokens < p.tokens ? begin + kChunkTokens : p.tokens;
  const bool all = p.tokens <= kChunkTokens;
  const std::int32_t first = p.ids[begin], last = p.ids[end - 1];
  float* edges = p.edges + chunk * 2 * p.width + column;
  if (!all) {
    edges[p.width] = 0;  // where one run fills the chunk
    if (column == 0) {
      p.edge_ids[chunk * 2] = first;
      p.edge_ids[chunk * 2 + 1] = last;
    }
  }
  std::int32_t row = first;
  float sum = 0;
  const auto finish = [&] {
    if (!all && (row == first || row == last)) {
      edges[row == first ? 0 : p.width] = sum;
    } else if (row >= 0 && row < p.rows) {
      p.gradient[row * p.width + column] = Io::store(sum);
    }
  };
  for (std::int64_t token = begin; token < end; token += kAtOnce) {
    std::int32_t next[kAtOnce];
    float value[kAtOnce];
    COSFORMER_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t at = token + i < end ? token + i : end - 1;
      next[i] = p.ids[at];
      value[i] = FromIo::load(p.from[(p.order != nullptr ? p.order[at] : at) * p.width + column]);
    }
    COSFORMER_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      if (next[i] != row) {
        finish();
        row = next[i];
        sum = 0;
      }
      if (token + i < end) sum += value[i];
    }
  }
  finish();
}

}  // namespace cosformer::kernels::cuda
