// The sweep of full attention with a decay (chunk_pairs.cuh): what lies where, and who waits for whom.
//
// Three warpgroups. One fetches pairs of chunks and prepares them: features, turns, extra columns, the state after the
// pair. The other two have a half of the pair's rows each, which they multiply with the states and the pair, and a part
// of the running state, to which they add the pair.
#pragma once

#include "kernels/cuda/hopper/both_sides/chunk_pairs.cuh"

namespace cosformer::kernels::cuda {

template <HopperRole kRole_, bool kMasked_>
struct BothSidesLayout {
  static constexpr bool kForward = kRole_ == HopperRole::kForward, kQueries = kRole_ == HopperRole::kQueries,
                        kKeys = kRole_ == HopperRole::kKeys;  // keys: dk and dv in one sweep
  static constexpr bool kRowsAreQueries = !kKeys, kMasked = kMasked_;
  static constexpr int kThreads = 384, kRowThreads = 256, kMinBlocks = 1, kStages = 2;
  static constexpr int kProducerRegisters = kKeys ? 56 : 72, kRowRegisters = kKeys ? 224 : 216;
  static_assert(kProducerRegisters + 2 * kRowRegisters <= 65536 / kThreads / 8 * 8 * 3);

  // Shared memory. A half of a stage: its rows (for keys k beside v), features, values, one part of the state after the
  // pair. Then for each half the queries' rows of q and out (once), for each part the running state and what follows
  // the segment; extra blocks of the states, and of the columns, beside each other in a tile's rows; arrays; barriers.
  static constexpr int kTile = HopperPlace::kTile, kChunk = HopperPlace::kChunk, kPair = ChunkPairs::kPair;
  static constexpr int kRowTiles = kKeys ? 2 : 1;
  static constexpr int kHalfBytes = (kRowTiles + 3) * kTile;
  static constexpr int kOwn = kStages * 2 * kHalfBytes;
  static constexpr int kPrior = kOwn + (kQueries ? 2 * kTile : 0);
  static constexpr int kStates = kPrior + (kQueries ? 2 * kTile : 0);
  static constexpr int kBeyond = kStates + 2 * kTile;
  static constexpr int kExtras = kBeyond + 2 * kTile;
  static constexpr int kColumnExtras = kExtras + (kKeys ? kTile : 0);  // ones have room beside the states'
  static constexpr int kWeights = kColumnExtras + kTile;               // of the columns: each stage, each half
  static constexpr int kRowTurns = kWeights + kStages * 2 * 256;       // float4 for each row: before, after
  static constexpr int kRowErrors = kRowTurns + kStages * kPair * 16;  // e and 1/s of the queries
  static constexpr int kDistances = kRowErrors + (kQueries ? kStages * kPair * 8 : 0);
  static constexpr int kTableSize = 2 * kPair + 2;
  static constexpr int kSecondTable = kTableSize + 16;  // in banks that the first one's readers leave free
  static constexpr int kAfterExtras = kDistances + (kSecondTable + kTableSize) * 4;  // for each stage
  static constexpr int kBeyondExtras = kAfterExtras + kStages * kPair * 4;
  static constexpr int kDenominators = kBeyondExtras + kPair * 4;  // for each stage
  static constexpr int kErrors = kDenominators + (kForward ? 0 : kStages * kPair * 4);
  static constexpr int kRowDots = kErrors + (kKeys ? kStages * kPair * 4 : 0);
  static constexpr int kAngles = kRowDots + (kQueries ? kPair * 4 : 0);
  static constexpr int kDecaySums = kAngles + HopperPlace::kAngleBytes;  // a double for each thread of the rows
  static constexpr int kBarriers = kDecaySums + (kForward ? 0 : kRowThreads * 8);
  static constexpr int kSharedBytes = kBarriers + (2 * kStages + 1) * 8;
  static_assert(kDistances % 16 == 0 && kAfterExtras % 16 == 0 && kAngles % 16 == 0 && kSharedBytes + 1024 <= 233472);

  // From the beginning of shared memory on.
  static constexpr __device__ int row_tile(int stage, int half) { return (stage * 2 + half) * kHalfBytes; }
  static constexpr __device__ int feature_tile(int stage, int half) {
    return row_tile(stage, half) + kRowTiles * kTile;
  }
  static constexpr __device__ int value_tile(int stage, int half) { return feature_tile(stage, half) + kTile; }
  static constexpr __device__ int after_tile(int stage, int part) { return feature_tile(stage, part) + 2 * kTile; }
  static constexpr __device__ int own_tile(int half) { return kOwn + half * kTile; }
  static constexpr __device__ int prior_tile(int half) { return kPrior + half * kTile; }
  static constexpr __device__ int state_tile(int part) { return kStates + part * kTile; }
  static constexpr __device__ int beyond_tile(int part) { return kBeyond + part * kTile; }
  static constexpr __device__ int weights(int stage, int half) { return kWeights + (stage * 2 + half) * 256; }

  // Pieces of 16 bytes in the rows of the extra blocks. Where values are contracted, a block is 16 columns, and both
  // parts of a state lie in the first eight; where they are results, a part is a block of eight.
  static constexpr int kStatePiece = 2;
  static constexpr __device__ int after_piece(int stage) { return 4 + 2 * stage; }
  static constexpr __device__ int state_extra(int piece, int part) { return kExtras + (piece + part) * 16; }
  static constexpr __device__ int column_piece(int stage, int half) { return kKeys ? (stage * 2 + half) * 2 : 0; }
  static constexpr __device__ int column_extra(int stage, int half) {
    return kColumnExtras + column_piece(stage, half) * 16;
  }

  // Barriers: a stage has been prepared, or nobody reads it any more; the queries' own rows have come.
  static constexpr __device__ int full(int stage) { return kBarriers + stage * 8; }
  static constexpr __device__ int free(int stage) { return kBarriers + (kStages + stage) * 8; }
  static constexpr __device__ int own_full() { return kBarriers + 2 * kStages * 8; }
};

template <class L>
struct BothSidesWarpgroup : ChunkPairs {
  using ChunkPairs::ChunkPairs;

  __device__ __forceinline__ float* numbers(int offset, int stage, int half) const {
    return reinterpret_cast<float*>(shared + offset) + stage * kPair + half * kChunk;
  }
  __device__ __forceinline__ float4* row_turns(int stage, int half) const {
    return reinterpret_cast<float4*>(shared + L::kRowTurns) + stage * kPair + half * kChunk;
  }
  __device__ __forceinline__ float2* row_errors(int stage, int half) const {
    return reinterpret_cast<float2*>(shared + L::kRowErrors) + stage * kPair + half * kChunk;
  }
  __device__ __forceinline__ Io* weights(int stage, int half) const {
    return reinterpret_cast<Io*>(shared + L::weights(stage, half));
  }
  // The extra number of a state's part at feature `row`.
  __device__ __forceinline__ void set_state_extra(int piece_of_state, int part, int row, float x) {
    const std::uint32_t pair = head_and_rest(x);
    const int at = (L::kForward ? piece_of_state + part : piece_of_state) ^ row % 8;
    *reinterpret_cast<uint2*>(shared + L::kExtras + row * 128 + at * 16 + (L::kForward ? 0 : part * 8)) = {pair, pair};
  }
};

}  // namespace cosformer::kernels::cuda
