// The warpgroup sweep's tiles and state: fetched, prepared, published.
#pragma once

#include "kernels/cuda/hopper/narrow/sweep.cuh"

namespace cosformer::kernels::cuda {

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::start_rows(int position) {
  if constexpr (kTma) {
    if (lane == 0) {
#pragma unroll
      for (int stage = 0; stage < kStages; ++stage) mbarrier::init(barrier(stage), 1);
    }
    wgmma::publish_shared();
    __syncwarp();
    return;
  }
  if constexpr (kInter) {
    rows_from(0) = kForward ? rows_of(w.q, q_begin, position, 0)
                            : (kQueries ? rows_of(w.dout, q_begin, position, 0) : rows_of(w.v, k_begin, position, 0));
    if constexpr (kKeys) rows_from(1) = rows_of(w.k, k_begin, position, 0);
    if constexpr (kHasOwn) own_rows = rows_of(w.q, q_begin, position, 0);
    if constexpr (kHasPrior) prior_rows = rows_of(w.out, q_begin, position, 0);
  }
  if constexpr (kRowSums) {
    rows_from(2) = rows_of(w.q, q_begin, position, 0);
  } else if constexpr (kUpdate) {
    rows_from(2) = kRowsAreQueries ? rows_of(w.k, k_begin, position, 0) : rows_of(w.q, q_begin, position, 0);
    rows_from(3) = kRowsAreQueries ? rows_of(w.v, k_begin, position, 0) : rows_of(w.dout, q_begin, position, 0);
  }
}

// Starts the copies of the chunk at `position`; the rows' pointers move on to the next one.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::fetch(int stage, int position) {
  const unsigned keys = present_keys<kMasked>(position);
  const unsigned rows = kRowsAreQueries ? 15U : keys, columns = kRowsAreQueries ? keys : 15U;
  const auto copy = [&](std::uint32_t tile, int number, const TileSource& source, int length, unsigned seen) {
    const Io* from = rows_from(number);
    fetch_tile<kMasked, kLastFirst>(tile, from, source, 0, length, seen, position);
    rows_from(number) = from;
  };
  if constexpr (kInter) {
    copy(x_tile(stage), 0, kForward ? w.q : (kQueries ? w.dout : w.v), row_length, rows);
    if constexpr (kKeys) copy(x_tile(stage) + kTile, 1, w.k, row_length, rows);
    if constexpr (kHasPrior) {
      if (p.normalised) {
        fetch_tile<false>(prior_tile(), prior_rows, w.out, 0, row_length, rows, position);
      }
    }
  }
  if constexpr (kRowSums) {
    copy(feature_tile(stage), 2, w.q, row_length, rows);
  } else if constexpr (kUpdate) {
    copy(feature_tile(stage), 2, kRowsAreQueries ? w.k : w.q, column_length, columns);
    copy(value_tile(stage), 3, kRowsAreQueries ? w.v : w.dout, column_length, columns);
  }
  if constexpr (kHasPrior || (kKeys && kUpdate)) {
    if (p.normalised) {
      fetch_row_numbers<kKeys>(denominators(stage), floats(kRawErrors) + stage * kChunk, position);
    }
  }
  commit_copies();
}

// The same by TMA: one lane asks for the warp's rows of each tile. Zeros come for rows outside the tensor.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::fetch_by_tma(int stage, int position) {
  if (lane != 0) return;
  tma::await_stores_read();  // results of the chunk before this one go out from where these rows come to
  const auto from = [&](const TensorMap& map, std::uint32_t tile) {
    tma::fetch(tile + warp * kTmaBytes, map, position + warp * 16, head, batch, barrier(stage));
  };
  mbarrier::arrive_expect_tx(barrier(stage), (kUpdate ? 3 : 1) * kTmaBytes);
  from(w.q_map, x_tile(stage));
  if constexpr (kUpdate) {
    from(w.k_map, feature_tile(stage));
    from(w.v_map, value_tile(stage));
  }
}

// A group of copies in any case: waiting counts groups.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::fetch_if(bool wanted, int stage,
                                                                                     int position) {
  if constexpr (kTma) {
    if (wanted) fetch_by_tma(stage, position);
    __syncwarp();
  } else if (wanted) {
    fetch(stage, position);
  } else {
    commit_copies();
  }
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::fetch_own(int end, int position) {
  if constexpr (kHasOwn) {
    if (position < end) fetch_tile<kMasked>(own_tile(), own_rows, w.q, 0, row_length, 15U, position);
    commit_copies();
  }
}

// Features, the extra block of the values, and the rows' dout·out: each warp its own 16 rows.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::prepare(int stage, int position) {
  __syncwarp();  // what other lanes copied
  const int row = warp * 16 + lane;
  if constexpr (kUpdate) {
    prepare_features<kQueryColumns>(feature_tile(stage), denominators(stage));
    if constexpr (kKeys) set_error_columns(stage);
  }
  if constexpr (kHasPrior) {
    if (!p.normalised) return;
    float dots[4] = {};
    add_dots(x_tile(stage), prior_tile(), dots);
    finish_dots(dots, floats(kRowDots));
    if constexpr (kRowSums) {
      if (lane < 16) {
        const bool clamped = denominators(stage)[row] < p.eps;
        set_extra(shared + kExtras, 0, row, clamped ? 0.0F : -floats(kRowDots)[row]);
      }
    }
  }
}

// The queries' e, from e/s as it was fetched.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::set_error_columns(int stage) {
  if (!p.normalised || lane >= 16) return;
  const int row = warp * 16 + lane;
  set_extra(shared + kExtras, column_piece(stage), row,
            floats(kRawErrors)[stage * kChunk + row] * fmaxf(denominators(stage)[row], p.eps));
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::clear_blocks() {
  const uint4 zero = {0, 0, 0, 0};
  for (int i = threadIdx.x * 16; i < kTile; i += 128 * 16) {
    store_shared_16(base + kExtras + i, zero);
  }
  __syncthreads();
  if (kUpdate && !kQueryColumns && threadIdx.x < kChunk) set_one(shared + kExtras, 0, threadIdx.x);
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::begin_state(int part) {
  if constexpr (kInter) {
    load_block(state[part], initial_slot(), part, 0, 0);
  } else {
    clear_block(state[part]);
  }
}

// As if the sum that store_state has just stored were loaded; without that call before, the rests would be missing.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::take_state(int part,
                                                                                       const float (&sum)[2][9][4]) {
#pragma unroll
  for (int n = 0; n < 9; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) state[part][n][i] = n < 8 || i % 2 == 0 ? sum[part][n][i] : 0.0F;
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::store_state(float* slot) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    add_rests(state[part]);
    if constexpr (kDecays == Decays::kGrow) scale_block(state[part], growth);
    store_block(state[part], slot, part, 0, 0);
  }
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::keep_state(float* slot) {
  const float heads[2][2] = {{state[0][8][0], state[0][8][2]}, {state[1][8][0], state[1][8][2]}};
  store_state(slot);
#pragma unroll
  for (int part = 0; part < 2; ++part)
#pragma unroll
    for (int i = 0; i < 2; ++i) state[part][8][2 * i] = heads[part][i];
}

// Puts a part of the state where the matrix unit can read it as an operand.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::publish_state(int part) {
  publish_block(state[part], state_tile(part), base + kExtras, state_piece(part));
}

}  // namespace cosformer::kernels::cuda
