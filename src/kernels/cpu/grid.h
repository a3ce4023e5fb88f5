// How sequences are cut into chunks and segments, and where each item of a phase lies among them.
//
// Everything here has internal linkage: the header is compiled both with baseline flags (plan.cc) and inside each
// instruction set's translation unit, and the linker must never swap one copy for another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace cosformer::kernels::cpu {
namespace {

// What the geometry depends on besides the problem.
struct BodyTraits {
  std::int64_t vector_bytes = 0;
  std::int64_t chunk = 0;      // tokens; a multiple of the lanes of every vector type
  bool half_products = false;  // bf16 problems multiply in bf16
};

// Bidirectional with a decay keeps the part seen from the right of one segment in scratch, so segments stay short.
constexpr std::int64_t kBothSidesSegmentChunks = 16;

[[maybe_unused]] constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Tokens [begin, begin + length) of a sequence: `queries` of them have a query, `keys` a key, both from `begin` on.
struct Chunk {
  std::int64_t begin = 0, length = 0;
  std::int64_t queries = 0, keys = 0;
};

// Keys end at a chunk boundary, so that the outgoing state is the state between two chunks.
struct ChunkGrid {
  std::int64_t chunk = 0;
  std::int64_t query_length = 0, key_length = 0;
  std::int64_t key_chunks = 0, chunks = 0;
};

[[maybe_unused]] ChunkGrid make_grid(const Sequence& sequence, std::int64_t chunk) {
  ChunkGrid grid;
  grid.chunk = chunk;
  grid.query_length = sequence.q_length;
  grid.key_length = sequence.k_length;
  grid.key_chunks = (sequence.k_length + chunk - 1) / chunk;
  const std::int64_t rest = sequence.q_length - sequence.k_length;
  grid.chunks = grid.key_chunks + (rest > 0 ? (rest + chunk - 1) / chunk : 0);
  return grid;
}

[[maybe_unused]] Chunk chunk_at(const ChunkGrid& grid, std::int64_t index) {
  Chunk chunk;
  const bool has_keys = index < grid.key_chunks;
  const std::int64_t end = has_keys ? grid.key_length : grid.query_length;
  chunk.begin = has_keys ? index * grid.chunk : grid.key_length + (index - grid.key_chunks) * grid.chunk;
  chunk.length = end - chunk.begin < grid.chunk ? end - chunk.begin : grid.chunk;
  chunk.keys = has_keys ? chunk.length : 0;
  const std::int64_t left = grid.query_length - chunk.begin;
  chunk.queries = left < 0 ? 0 : (left < chunk.length ? left : chunk.length);
  return chunk;
}

[[maybe_unused]] std::int64_t longest_in_chunks(const AttentionProblem& problem, std::int64_t chunk) {
  std::int64_t longest = 1;
  for (std::int64_t s = 0; s < problem.sequence_count; ++s) {
    const std::int64_t chunks = make_grid(problem.sequences[s], chunk).chunks;
    longest = chunks > longest ? chunks : longest;
  }
  return longest;
}

// Schedule::segments is the count for the longest sequence; shorter ones have fewer segments of the same length.
[[maybe_unused]] std::int64_t chunks_per_segment(const AttentionProblem& problem, const Schedule& schedule,
                                                 std::int64_t chunk) {
  return (longest_in_chunks(problem, chunk) + schedule.segments - 1) / schedule.segments;
}

[[maybe_unused]] std::int64_t segments_of(const ChunkGrid& grid, std::int64_t chunks_per_segment) {
  const std::int64_t segments = (grid.chunks + chunks_per_segment - 1) / chunks_per_segment;
  return segments > 0 ? segments : 1;
}

// One segment of one head of one sequence. `index` counts them all and names their slot in the workspace.
struct Item {
  std::int64_t sequence = 0, head = 0, segment = 0, segments = 1, index = 0;
};

// Finds items by number, walking over the sequences from where the last search ended.
class ItemCursor {
 public:
  ItemCursor(const AttentionProblem& problem, std::int64_t chunk, std::int64_t chunks_per_segment)
      : problem_(problem), chunk_(chunk), chunks_per_segment_(chunks_per_segment) {}

  // Items in ascending order only.
  Item segment_item(std::int64_t index) {
    while (index >= first_ + problem_.heads * segments_here()) step();
    const std::int64_t segments = segments_here(), offset = index - first_;
    return {sequence_, offset / segments, offset % segments, segments, index};
  }

  // A head of a sequence, all its segments: the first of them.
  Item head_item(std::int64_t index) {
    while (index / problem_.heads > sequence_) step();
    const std::int64_t head = index % problem_.heads, segments = segments_here();
    return {sequence_, head, 0, segments, first_ + head * segments};
  }

 private:
  std::int64_t segments_here() const {
    return segments_of(make_grid(problem_.sequences[sequence_], chunk_), chunks_per_segment_);
  }
  void step() {
    first_ += problem_.heads * segments_here();
    ++sequence_;
  }

  const AttentionProblem& problem_;
  std::int64_t chunk_, chunks_per_segment_;
  std::int64_t sequence_ = 0, first_ = 0;
};

// Whether each query also sees the keys after it through a second scan, from the right.
[[maybe_unused]] bool scans_both_sides(const AttentionProblem& problem) {
  return !problem.causal && problem.log_decay != nullptr;
}

// Whether every query reads the same state, the sum over all keys, and no chunk is looked into.
[[maybe_unused]] bool reads_whole_state(const AttentionProblem& problem) {
  return !problem.causal && problem.log_decay == nullptr;
}

}  // namespace
}  // namespace cosformer::kernels::cpu
