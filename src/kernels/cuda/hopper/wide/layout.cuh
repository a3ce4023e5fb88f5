// Heads of 65 to 128: a block owns 64 columns of the result (a slice) and is warp-specialised.
//
// The producer (producer.cuh) fetches chunks, applies the feature map and makes what is beside the tiles:
// turns, extra columns, the rows' e. The rows' warpgroup (rows.cuh) multiplies rows with the state and the chunk
// and writes results. The columns' (columns.cuh) keeps the state in its accumulators, adds a chunk to it, and
// publishes it for the chunk after that. None waits for another within a chunk: while rows of chunk c are at work, the
// state before chunk c + 1 is made, and chunk c + 2 prepared.
//
// What is contracted has two tiles of 64: features where rows are features, values where rows are values. The state of
// a slice has for each part, cosine and sine, two blocks accordingly.
#pragma once

#include "kernels/cuda/hopper/warp_specialised.cuh"

namespace cosformer::kernels::cuda {

// What a sweep is or does besides: one of two whose results are added up (the sides of full attention with a decay in
// the forward pass, or parts of heads), or a share of the decay's gradient (queries, keys).
enum class WideExtra : std::uint8_t { kNothing, kTwoSided, kDecayGradient, kTwoSidedDecayGradient };

template <HopperRole kRole_, Mode kMode, WideExtra kExtra, bool kMasked_>
struct WideLayout {
  static constexpr bool kForward = kRole_ == HopperRole::kForward, kQueries = kRole_ == HopperRole::kQueries,
                        kKeys = kRole_ == HopperRole::kKeys, kValues = kRole_ == HopperRole::kValues;
  static constexpr bool kTwoSided = kExtra == WideExtra::kTwoSided || kExtra == WideExtra::kTwoSidedDecayGradient;
  static constexpr bool kDecayGradient =
      kExtra == WideExtra::kDecayGradient || kExtra == WideExtra::kTwoSidedDecayGradient;
  static constexpr bool kMasked = kMasked_;
  static constexpr bool kFeatureRows = kForward || kValues;  // rows of features give values, else the reverse
  static constexpr bool kRowsAreQueries = kForward || kQueries;
  static_assert(kMode == Mode::kRun || kMode == Mode::kApply);
  static constexpr bool kRuns = kMode == Mode::kRun;  // a state runs along; else rows against a finished sum
  static constexpr bool kExtraColumn = !kValues;      // the values' gradient has no use for it
  static constexpr bool kHasOwn = !kFeatureRows, kHasPrior = kQueries;
  // Accumulators of the first and second block of a part, in tiles of eight columns.
  static constexpr int kFirstTiles = kFeatureRows && kExtraColumn ? 9 : 8, kSecondTiles = kExtraColumn ? 9 : 8;
  // Registers go where the accumulators are. A block begins with equal shares of a multiprocessor's, and would wait for
  // ever for more than all of them.
  static constexpr int kThreads = 128 * (kRuns ? 3 : 2);
  static constexpr int kMinBlocks = kRuns || (kTwoSided && kHasPrior) ? 1 : 2;
  static constexpr int kProducerRegisters = kDecayGradient ? 56 : 64;
  static constexpr int kRowRegisters =
      kRuns ? (kFeatureRows ? 200 : 288 - kProducerRegisters) : (kMinBlocks == 1 ? 240 : 192);
  static constexpr int kColumnRegisters = kFeatureRows ? 240 : 216;
  static_assert(kProducerRegisters + kRowRegisters + (kRuns ? kColumnRegisters : 0) <=
                65536 / kMinBlocks / kThreads / 8 * 8 * (kThreads / 128));
  static constexpr int kStages = kRuns && kFeatureRows && !kTwoSided ? 3 : 2;
  static constexpr int kStateCopies = kRuns ? 2 : 1;

  // Shared memory: tiles, arrays, barriers. A stage has the rows' two tiles, their own, of two sides what the first one
  // left, the two contracted tiles of the columns and the slice's.
  static constexpr int kTile = HopperPlace::kTile, kChunk = HopperPlace::kChunk;
  static constexpr int kRowTiles = 2 + (kHasOwn ? 1 : 0) + (kTwoSided ? 1 : 0);
  static constexpr int kStageBytes = (kRowTiles + (kRuns ? 3 : 0)) * kTile;
  static constexpr int kPrior = kStages * kStageBytes;
  static constexpr int kStates = kPrior + (kHasPrior ? 2 * kTile : 0);
  static constexpr int kStateExtras = kStates + kStateCopies * 4 * kTile;  // beside each other in one tile's rows
  static constexpr int kBlocks = kStateExtras + kTile;                     // the columns' extra blocks, likewise
  static constexpr int kWeights = kBlocks + (kRuns ? kTile : 0);           // of the columns, for each stage
  static constexpr int kRowTurns = kWeights + (kRuns ? kStages * 256 : 0);
  static constexpr int kRowErrors = kRowTurns + kStages * kChunk * 8;  // e and 1/s
  static constexpr int kDistances = kRowErrors + (kHasPrior ? kStages * kChunk * 8 : 0);
  static constexpr int kDenominators = kDistances + (kRuns ? HopperPlace::kDistanceBytes : 0);
  static constexpr int kNumberSets = kHasPrior || (!kRowsAreQueries && kRuns) ? kStages : 0;
  static constexpr int kErrors = kDenominators + kNumberSets * kChunk * 4;
  static constexpr int kRowDots = kErrors + (kRowsAreQueries ? 0 : kNumberSets * kChunk * 4);
  static constexpr int kRowFactors = kRowDots + (kHasPrior ? kChunk * 4 : 0);
  static constexpr int kAngles = kRowFactors + (kTwoSided ? kChunk * 4 : 0);
  static constexpr int kDecaySums = kAngles + HopperPlace::kAngleBytes;  // a double for each thread of the rows
  static constexpr int kBarriers = kDecaySums + (kDecayGradient ? 128 * 8 : 0);
  static constexpr int kSharedBytes = kBarriers + (2 * kStages + 4) * 8;
  static_assert(!kDecayGradient || (kRuns && (kQueries || kKeys)));
  static_assert(kDistances % 16 == 0 && kDenominators % 16 == 0 && kAngles % 16 == 0 &&
                kMinBlocks * (kSharedBytes + 1024) <= 233472);

  // From the beginning of shared memory on.
  static constexpr __device__ int row_tile(int stage, int block) { return stage * kStageBytes + block * kTile; }
  static constexpr __device__ int own_tile(int stage) { return row_tile(stage, 2); }
  static constexpr __device__ int earlier_tile(int stage) { return row_tile(stage, kRowTiles - 1); }
  static constexpr __device__ int contracted(int stage, int block) { return row_tile(stage, kRowTiles + block); }
  static constexpr __device__ int sliced(int stage) { return contracted(stage, 2); }
  static constexpr __device__ int state_tile(int copy, int part, int block) {
    return kStates + ((copy * 2 + part) * 2 + block) * kTile;
  }
  // Pieces of 16 bytes: values are wanted 8 columns at a time, but 16 where they are contracted.
  static constexpr __device__ int state_piece(int copy, int part, int block) {
    return (copy * 2 + part) * 2 + (kFeatureRows ? block : 0);
  }
  static constexpr __device__ int block_piece(int stage) { return kRowsAreQueries ? 0 : 2 * stage; }

  // Barriers. A chunk is full when it has been prepared, and free when nobody reads it any more; a copy of the state is
  // published by the columns and returned by the rows. All threads of a warpgroup arrive.
  static constexpr __device__ int full(int stage) { return kBarriers + stage * 8; }
  static constexpr __device__ int free(int stage) { return kBarriers + (kStages + stage) * 8; }
  static constexpr __device__ int published(int copy) { return kBarriers + (2 * kStages + copy) * 8; }
  static constexpr __device__ int returned(int copy) { return kBarriers + (2 * kStages + 2 + copy) * 8; }

  // A block of the state within the whole.
  static constexpr __device__ int feature_of(int slice, int block) { return (kFeatureRows ? block : slice) * 64; }
  static constexpr __device__ int value_of(int slice, int block) { return (kFeatureRows ? slice : block) * 64; }
};

// What producer and consumers share.
struct WideWarpgroup : WarpSpecialised {
  using WarpSpecialised::WarpSpecialised;

  // Of a block that sums. Whether it has something to sum: nothing starts after the last segments.
  template <bool kOfQueries>
  __device__ __forceinline__ bool place_sum() {
    locate<false, !kOfQueries>();
    return p.frame != Frame::kBoth || segment + p.slot_step < p.segments;
  }
  // Features of both parts times two blocks of values, added to the state's blocks.
  template <int kFirst, int kSecond>
  __device__ __forceinline__ void add_features(const A (&features)[2][4], std::uint64_t low, std::uint64_t high,
                                               float (&first)[2][kFirst][4], float (&second)[2][kSecond][4]) {
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        wgmma::multiply<true>(first[part], features[part][k], wgmma::step_along_rows(low, k), true);
        wgmma::multiply<true>(second[part], features[part][k], wgmma::step_along_rows(high, k), true);
      }
    wgmma::commit();
  }
};

}  // namespace cosformer::kernels::cuda
