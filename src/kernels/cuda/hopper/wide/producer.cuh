// The warpgroup that prepares a wide head's chunks: a warp its own 16 rows of every tile.
#pragma once

#include "kernels/cuda/hopper/wide/layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct WideProducer : WideWarpgroup {
  using WideWarpgroup::WideWarpgroup;
  const Io *x_rows, *own_rows, *prior_rows, *contracted_rows, *sliced_rows;

  __device__ __forceinline__ const TileSource& x_source() const {
    return L::kForward ? w.q : (L::kQueries ? w.dout : (L::kKeys ? w.v : w.k));
  }
  __device__ __forceinline__ const TileSource& own_source() const { return L::kQueries ? w.q : w.k; }
  __device__ __forceinline__ const TileSource& contracted_source() const {
    return L::kFeatureRows ? (L::kRowsAreQueries ? w.k : w.q) : (L::kRowsAreQueries ? w.v : w.dout);
  }
  __device__ __forceinline__ const TileSource& sliced_source() const {
    return L::kFeatureRows ? (L::kRowsAreQueries ? w.v : w.dout) : (L::kRowsAreQueries ? w.k : w.q);
  }

  __device__ __forceinline__ void start(int position) {
    const int begin = L::kRowsAreQueries ? q_begin : k_begin;
    const int column_begin = L::kRowsAreQueries ? k_begin : q_begin;
    x_rows = rows_of(x_source(), begin, position, 0);
    if constexpr (L::kHasOwn) own_rows = rows_of(own_source(), begin, position, slice * 64);
    if constexpr (L::kHasPrior) prior_rows = rows_of(w.out, begin, position, 0);
    if constexpr (L::kRuns) {
      contracted_rows = rows_of(contracted_source(), column_begin, position, 0);
      sliced_rows = rows_of(sliced_source(), column_begin, position, slice * 64);
    }
  }

  __device__ __forceinline__ void fetch_one(int tile, const Io*& rows, const TileSource& source, int column, int length,
                                            unsigned seen, int position) {
    fetch_tile<L::kMasked>(base + tile, rows, source, column, length, seen, position);
  }
  // Two tiles beside each other.
  __device__ __forceinline__ void fetch_both(int tile, const Io*& rows, const TileSource& source, int length,
                                             unsigned seen, int position) {
    const Io* beside = rows + 64;
    fetch_one(tile, rows, source, 0, length, seen, position);
    fetch_one(tile + kTile, beside, source, 64, length, seen, position);
  }
  __device__ __forceinline__ void fetch(int stage, int position) {
    const unsigned keys = present_keys<L::kMasked>(position);
    const unsigned rows = L::kRowsAreQueries ? 15U : keys, columns = L::kRowsAreQueries ? keys : 15U;
    if constexpr (L::kRuns) {
      fetch_both(L::contracted(stage, 0), contracted_rows, contracted_source(), column_length, columns, position);
      fetch_one(L::sliced(stage), sliced_rows, sliced_source(), slice * 64, column_length, columns, position);
    }
    fetch_both(L::row_tile(stage, 0), x_rows, x_source(), row_length, rows, position);
    if constexpr (L::kHasOwn) {
      fetch_one(L::own_tile(stage), own_rows, own_source(), slice * 64, row_length, rows, position);
    }
    if constexpr (L::kTwoSided) {
      fetch_earlier(base + L::earlier_tile(stage),
                    target_of(L::kValues ? w.second : w.first, L::kRowsAreQueries ? q_begin : k_begin, position));
    }
    if (L::kNumberSets > 0 && p.normalised) {
      fetch_row_numbers<!L::kRowsAreQueries && L::kExtraColumn>(floats(L::kDenominators, stage),
                                                                floats(L::kErrors, stage), position);
    }
  }
  __device__ __forceinline__ void fetch_prior(int position) {
    if (L::kHasPrior && p.normalised) fetch_both(L::kPrior, prior_rows, w.out, row_length, 15U, position);
  }

  // Features of the columns and their extra column.
  __device__ __forceinline__ void prepare_columns(int stage) {
    const float* denominators = floats(L::kDenominators, stage);
    const auto prepare = [&](int tile) { prepare_features<!L::kRowsAreQueries>(base + tile, denominators); };
    if constexpr (L::kFeatureRows) {
      prepare(L::contracted(stage, 0));
      prepare(L::contracted(stage, 1));
    } else {
      prepare(L::sliced(stage));
    }
    if (!L::kRowsAreQueries && L::kExtraColumn && p.normalised && lane < 16) {
      const int row = warp * 16 + lane;
      set_extra(shared + L::kBlocks, L::block_piece(stage), row,
                floats(L::kErrors, stage)[row] * fmaxf(denominators[row], p.eps));
    }
  }

  // e = −dout·out and 1/s of the queries' rows; e is 0 where the denominator was clamped.
  __device__ __forceinline__ void prepare_errors(int stage, int position) {
    if (p.normalised) {
      float dots[4] = {};
      add_dots(base + L::row_tile(stage, 0), base + L::kPrior, dots);
      add_dots(base + L::row_tile(stage, 1), base + L::kPrior + kTile, dots);
      finish_dots(dots, floats(L::kRowDots));
    }
    if (lane < 16) {
      const int row = warp * 16 + lane;
      float2 numbers = {0.0F, 1.0F};
      if (p.normalised) {
        numbers = error_and_scale(floats(L::kDenominators, stage)[row], floats(L::kRowDots)[row]);
        if (slice == 0) keep_error(position, row, numbers);
      }
      pairs(L::kRowErrors, stage)[row] = numbers;
    }
  }

  __device__ __forceinline__ void run() {
    locate<true, L::kRowsAreQueries>();
    const auto [begin, end, last_segment] = span();
    start(begin);
    if (begin < end) fetch_prior(begin);
    for (int i = 0; i < L::kStages - 1; ++i) {
      if (begin + i * kChunk < end) fetch(i, begin + i * kChunk);
      commit_copies();  // a group in any case: waiting counts groups
    }
    take_angles();
    keep_angles<false>(shared + L::kAngles);
    if constexpr (L::kRuns) {
      clear_tile(L::kBlocks);
      if (L::kRowsAreQueries && threadIdx.x % 128 < kChunk) set_one(shared + L::kBlocks, 0, threadIdx.x % 128);
    }
    int first_row = -1, last_row = -1;
    RingTurn<L::kStages> ring;
    for (int position = begin; position < end; position += kChunk) {
      const int stage = ring.stage, before = stage == 0 ? L::kStages - 1 : stage - 1;
      if constexpr (L::kRuns) follow_powers(position, first_row, last_row);
      wait_copies<L::kHasPrior ? 0 : L::kStages - 2>();
      __syncwarp();  // what other lanes copied
      set_turns<L::kRuns, true, Decays::kFactor>(position, position == begin, shared + L::kAngles,
                                                 reinterpret_cast<Io*>(shared + L::kWeights + stage * 256),
                                                 pairs(L::kRowTurns, stage));
      if constexpr (L::kRuns) prepare_columns(stage);
      if constexpr (L::kHasPrior) prepare_errors(stage, position);
      wgmma::publish_shared();
      arrive(L::full(stage));
      if (L::kHasPrior && position + kChunk < end) fetch_prior(position + kChunk);
      const int next = position + (L::kStages - 1) * kChunk;
      if (next < end) {
        if (position > begin) wait(L::free(before), ring.round - (stage == 0 ? 1 : 0));
        fetch(before, next);
      }
      commit_copies();
      ring.advance();
    }
  }
};

}  // namespace cosformer::kernels::cuda
