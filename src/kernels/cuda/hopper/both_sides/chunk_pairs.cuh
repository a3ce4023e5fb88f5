// Full attention with a decay, heads of up to 64: what its two kernels share. states_after.cuh leaves the state that
// lies after each pair of chunks; then one sweep goes along with time, in which rows meet the
// running state before their pair, their pair, and the state after it.
//
// Two warpgroups share a pair of 128 tokens: each has a half of it, 64 tokens, and keeps one part of the state, cosine
// or sine. Decays are relative to the pair.
//
// A state after a pair is 2 x 64 rows of values in bfloat16, as many numbers as the pair's rows of a result: it waits
// where a result of the pair will be written, and is read before that. Nothing lies after the last pair of a segment
// but what follows the segment, which is added in the sweep.
#pragma once

#include "kernels/cuda/hopper/warp_specialised.cuh"

namespace cosformer::kernels::cuda {

struct ChunkPairs : WarpSpecialised {
  using WarpSpecialised::WarpSpecialised;
  static constexpr int kPair = 2 * kChunk;

  // A half's tile of a tensor.
  template <bool kMasked>
  __device__ __forceinline__ void fetch_half(std::uint32_t tile, const TileSource& source, int begin, int length,
                                             unsigned seen, int chunk) {
    const Io* rows = rows_of(source, begin, chunk, 0);
    fetch_tile<kMasked>(tile, rows, source, 0, length, seen, chunk);
  }

  // The extra columns of the state after a pair: 64 for each part. Pairs that have one are whole, so that each begins
  // in a piece of 128 rows of its own.
  __device__ __forceinline__ float* after_extras(int pair) const {
    const std::int64_t row = static_cast<std::int64_t>(batch) * p.q_length + q_begin + pair;
    return w.after_extras + (row / kPair * p.heads + head) * kPair;
  }

  // One part of a tile's features, for the sum over its tokens.
  __device__ __forceinline__ void weigh_all_of_part(A (&to)[4], const A (&raw)[2][2], const Io* weights, int part) {
    weigh_part(to, raw[0], weights, part, 0);
    weigh_part(to, raw[1], weights, part, 2);
  }
};

}  // namespace cosformer::kernels::cuda
