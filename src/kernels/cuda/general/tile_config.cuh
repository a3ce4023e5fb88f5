// Tile sizes of the sweep kernel, one row per padded feature dim and kind of number.
//
// kChunk tokens are handled at once, 16 rows to a warp; kValues columns of the values belong to one block. The state of
// 2·features·kValues floats lives in the accumulators of the block's warps, so that kValues is bounded by registers.
// float32 operands take twice the shared memory: smaller chunks, no second stage.
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

template <class Io>
struct EngineOf;
template <>
struct EngineOf<__nv_bfloat16> {
  using type = PairEngine<__nv_bfloat16>;
};
template <>
struct EngineOf<__half> {
  using type = PairEngine<__half>;
};
template <>
struct EngineOf<float> {
  using type = FloatEngine;
};

constexpr int values_of(int features) {
  return features == 32 || features == 256 ? 32 : 64;
}
// Few warps with many registers read shared memory least, which is what a running sweep is short of; sums and
// applications of a sum are light and want many warps.
constexpr int warps_of(int features, Mode mode) {
  return features == 32 || (features == 64 && mode == Mode::kRun) ? 4 : 8;
}
constexpr int chunk_of(int features, bool wide) {
  return features == 32 || features == 256 || (wide && features >= 128) ? 32 : 64;
}

template <class Io_, int kFeatures_, Role kRole_, Mode kMode_>
struct TileConfig {
  using Io = Io_;
  using Engine = typename EngineOf<Io>::type;
  using Operand = typename Engine::Operand;
  static constexpr Role kRole = kRole_;
  static constexpr bool kIntra = kMode_ == Mode::kRun;
  static constexpr bool kInter = kMode_ != Mode::kSum;     // rows are needed
  static constexpr bool kUpdate = kMode_ != Mode::kApply;  // columns are needed
  static constexpr int kFeatures = kFeatures_;
  static constexpr bool kWide = sizeof(Operand) == 4;
  static constexpr bool kAsync = !kWide;
  static constexpr int kValues = values_of(kFeatures);
  static constexpr int kWarps = kWide ? (kFeatures == 32 ? 4 : 8) : warps_of(kFeatures, kMode_);
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kChunk = chunk_of(kFeatures, kWide);
  static constexpr int kStages = kAsync ? 2 : 1;
  static constexpr int kRowWarps = kChunk / 16;
  static constexpr int kColumnWarps = kWarps / kRowWarps;
  // The state: 16·kStateTiles features of every warp, whose values are cut kStateSplit times where warps outnumber
  // features.
  static constexpr int kStateSplit = kWarps * 16 > kFeatures ? kWarps * 16 / kFeatures : 1;
  static constexpr int kStateTiles = kFeatures * kStateSplit / 16 / kWarps;
  static constexpr int kMinBlocks = kWide || kFeatures > 64 ? 1 : (kFeatures == 32 ? 4 : (kIntra ? 2 : 3));

  static constexpr bool kRowsAreQueries = kRole == Role::kForward || kRole == Role::kQueryGradient;
  static constexpr bool kExtraColumn =
      kRole == Role::kForward || (kRole == Role::kValueGradient && kMode_ == Mode::kSum);
  static constexpr bool kExtraFeature = kRole == Role::kQueryGradient || kRole == Role::kKeyGradient;
  static constexpr bool kValueTransposed = kExtraFeature;  // features are the value dim's, values the key dim's
  static constexpr bool kOwn = kExtraFeature && kInter;
  // Numbers of a narrow range are not divided by the rows' sums in their tile: scores and the state's weights are, in
  // float.
  static constexpr bool kScaledColumns = Engine::kNarrowRange && !kRowsAreQueries;
  // Read where it is needed, not ahead, when tiles are wide: an A100 block has 163 KB.
  static constexpr bool kPrior = kRole == Role::kQueryGradient && kAsync && kInter && kFeatures <= 64;

  static constexpr int kDepth = Engine::kDepth;
  // One barrier per chunk where everything that a chunk writes has two places; else a second one before writing.
  static constexpr bool kOneBarrier = kAsync && !kIntra;
  static constexpr int kSets = kOneBarrier ? 2 : 1;                    // of the arrays below
  static constexpr bool kKeepX = kIntra && !kWide && kFeatures <= 64;  // x as fragments through scores and state
  static constexpr int kKeptSteps = kKeepX ? kFeatures / kDepth : 1;
  static constexpr int kFeaturePitch = kFeatures + Engine::kPad;
  static constexpr int kValuePitch = kValues + Engine::kPad;
  static constexpr int kStatePitch = kValues + (kExtraColumn || !kWide ? Engine::kStatePad : Engine::kPad);
  static constexpr int kValueTiles = kValues / 8;
  static constexpr int kSplitTiles = kValueTiles / kStateSplit;
  static constexpr int kStateColumns = kSplitTiles + (kExtraColumn ? 1 : 0);
  static constexpr int kOutTiles = kValueTiles / kColumnWarps;
  static constexpr int kOutColumns = kOutTiles * 8;

  // Shared memory, in bytes.
  static constexpr int kFeatureTile = kChunk * kFeaturePitch * int(sizeof(Operand));
  static constexpr int kValueTile = kChunk * kValuePitch * int(sizeof(Operand));
  static constexpr int kX = 0;
  static constexpr int kY = kX + (kInter ? kFeatureTile : 0);
  static constexpr int kZ = kY + (kUpdate ? kFeatureTile : 0);
  static constexpr int kOwnTile = kZ + (kUpdate ? kValueTile : 0);
  static constexpr int kStageBytes = kOwnTile + (kOwn ? kValueTile : 0);
  static constexpr int kPriorTile = kStages * kStageBytes;  // one stage: only the thread that fetched a piece reads it
  static constexpr int kState = kPriorTile + (kPrior ? kFeatureTile : 0);
  static constexpr int kStatePart = kFeatures * kStatePitch;  // elements
  // Results pass through the x tile of their rows, which no other warps read.
  static constexpr int kOutPitch = kFeaturePitch * int(sizeof(Operand) / sizeof(Io));
  static_assert(kValues <= kFeatures);
  static constexpr int kScalars = kState + (kInter ? 2 * kStatePart * int(sizeof(Operand)) : 0);
  // Float arrays of kChunk each; the distance table twice, the second shifted by one so that pairs are aligned in
  // either; the extra feature's state; the decay over a chunk; and the tiles' first rows as pointers.
  enum Array {
    kRowCosine,
    kRowTangent,
    kSumCosine,
    kSumSine,
    kErrorCosine,
    kErrorSine,
    kRowError,
    kRowInverse,
    kWeights,
    kArrays,
    kRowPower = kSets * kArrays,
    kSumPower,
    kRawDenominator,
    kRawDenominator2,
    kRawError,
    kRawError2,
    kCosine,
    kSine,
    kAllArrays
  };
  static constexpr int kDistance = kAllArrays * kChunk;  // in floats from kScalars
  static constexpr int kDistanceSize = 2 * kChunk + 2;
  static constexpr int kExtraState = kDistance + 2 * kDistanceSize;
  static constexpr int kChunkDecay = kExtraState + 2 * kValues;
  static constexpr int kStep = kChunkDecay + 4;  // cos and sin of a chunk's angle
  static constexpr int kLargest = kStep + 2;     // of the state, by warp
  static constexpr int kPointers = kLargest + (Engine::kNarrowRange ? kWarps : 0);
  enum Pointer { kXRows, kYRows, kZRows, kOwnRows, kPriorRows, kPointerCount };
  static constexpr int kSharedBytes = kScalars + (kPointers + 2 * kPointerCount) * 4;
  static_assert(kPointers % 2 == 0 && kExtraState % 2 == 0 && kDistance % 2 == 0);
};

}  // namespace cosformer::kernels::cuda
