// The running forward pass of heads of 65 to 128: a block owns the whole head, so that q, k and v are fetched once and
// scores are made once.
//
// Everything is transposed: the state Sᵀ (values by features) stays in the accumulators of two warpgroups, 64 values
// each, and goes to the products as their register operand (accumulators and operands have the same lanes), never
// through shared memory:
//   outᵀ = Sᵀ·[φ(q)cos, φ(q)sin]ᵀ + vᵀ·weightsᵀ,    Sᵀ += (vᵀ cos)·φ(k), (vᵀ sin)·φ(k)
// A third warpgroup (in_registers_scores.cuh) fetches and makes what is beside vᵀ here: features, weights within the
// chunk and the rows' sums. It is one chunk ahead of those that keep the state (in_registers_values.cuh).
#pragma once

#include "kernels/cuda/hopper/warp_specialised.cuh"

namespace cosformer::kernels::cuda {

template <Fetch kFetch>
struct InRegistersLayout {
  static constexpr bool kTma = kFetch == Fetch::kTma, kMasked = kFetch == Fetch::kMaskedCpAsync;
  // A block begins with equal shares of a multiprocessor's registers, and would wait for ever for more than all of
  // them.
  static constexpr int kThreads = 384, kMinBlocks = 1;
  static constexpr int kScoreRegisters = 104, kValueRegisters = 200;
  static_assert(kScoreRegisters + 2 * kValueRegisters <= 65536 / kThreads / 8 * 8 * 3);

  // Shared memory: stages, arrays, barriers. A stage has the queries' features with cosines and with sines (the first
  // where q came in), the keys', values (where results leave from), and weights. The keys' two tiles have eight rows
  // more, see InRegistersScores::publish_sum: four are the sum of all earlier keys, and in the first tile four are
  // turns.
  static constexpr int kTile = HopperPlace::kTile, kChunk = HopperPlace::kChunk;
  static constexpr int kStages = 3;
  static constexpr int kKeyRows = kChunk + 8, kKeyTile = kKeyRows * 128;
  static constexpr int kStageBytes = 7 * kTile + 2 * kKeyTile;
  static constexpr int kTurns = kStages * kStageBytes;      // cosines and sines of the keys, for each stage
  static constexpr int kInverses = kTurns + kStages * 256;  // of the denominators, for each stage
  static constexpr int kDistances = kInverses + kStages * kChunk * 4;
  static constexpr int kAngles = kDistances + HopperPlace::kDistanceBytes;
  static constexpr int kDecays = kAngles + HopperPlace::kAngleBytes;  // of a chunk, for each stage
  static constexpr int kRows = kDecays + 16;                          // see InRegistersScores::Rows
  static constexpr int kSum = kRows + 32;                             // see InRegistersScores::Sum
  static constexpr int kBarriers = kSum + kChunk * 16;
  static constexpr int kSharedBytes = kBarriers + 3 * kStages * 8;
  static_assert(kStages <= 4 && kDistances % 16 == 0 && kAngles % 16 == 0 && kSharedBytes + 1024 <= 233472);

  // From the beginning of shared memory on. `part` 0 cosines, 1 sines; `block` of 64 features or values.
  static constexpr __device__ int query_tile(int stage, int part, int block) {
    return stage * kStageBytes + (part * 2 + block) * kTile;
  }
  static constexpr __device__ int value_tile(int stage, int block) { return query_tile(stage, 2, block); }
  static constexpr __device__ int weight_tile(int stage) { return query_tile(stage, 3, 0); }
  static constexpr __device__ int key_tile(int stage, int block) {
    return stage * kStageBytes + 7 * kTile + block * kKeyTile;
  }
  static constexpr __device__ int turns(int stage) { return kTurns + stage * 256; }

  // A chunk is full when it has been prepared, and free when both warpgroups of values have done with it.
  static constexpr __device__ int full(int stage) { return kBarriers + stage * 8; }
  static constexpr __device__ int free(int stage) { return kBarriers + (kStages + stage) * 8; }
  // TMA has brought its tiles.
  static constexpr __device__ int fetched(int stage) { return kBarriers + (2 * kStages + stage) * 8; }
};

// What the warpgroups share.
struct InRegisters : WarpSpecialised {
  using WarpSpecialised::sync_warpgroup;
  using WarpSpecialised::WarpSpecialised;

  // What a lane knows of itself is made anew, and not by asking the hardware, which waits as long as shared memory.
  __device__ __forceinline__ void know_lane() {
    lane = anew(lane);
    const auto number = static_cast<unsigned>(lane);
    g = static_cast<int>(number / 4U);
    t = static_cast<int>(number % 4U);
    fetch_row = warp * 16 + static_cast<int>(number / 8U);
    piece = static_cast<int>(number % 8U);
    piece_offset = static_cast<unsigned>(fetch_row) * 128U + ((number % 8U ^ number / 8U) * 16U);
  }
  // The number of the warpgroup is given for the same reason.
  __device__ __forceinline__ static void sync_warpgroup(int warpgroup) { sync_named_barrier<128>(1 + warpgroup); }
};

}  // namespace cosformer::kernels::cuda
