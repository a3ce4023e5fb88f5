// The states after the pairs of a segment (see pair_steps.cuh), last pair first, and the sums over the whole segment:
// from its first token on, and where segments follow each other also up to its last one.
#pragma once

#include "kernels/cuda/pair_steps.cuh"

namespace cosformer::kernels::cuda {

// kSegments: there are several.
template <bool kOfQueries, bool kMasked, bool kSegments>
struct AfterStates : PairSteps {
  using PairSteps::PairSteps;
  static constexpr int kThreads = 256, kMinBlocks = 1;
  static constexpr int kStages = 5, kAhead = kStages - 2;  // a stage is free one pair later

  // Shared memory: stages (features and values of each half), a state on its way out, the values' extra column of each
  // half (ones, or e with a piece for each stage), the columns' weights (twice, of each half, for both sums), and of
  // queries denominators and e for each stage.
  static constexpr int kLeaving = kStages * 4 * kTile;
  static constexpr int kExtras = kLeaving + 2 * kTile;
  static constexpr int kWeights = kExtras + 2 * kTile;
  static constexpr int kDenominators = kWeights + 2 * 2 * 2 * 256;
  static constexpr int kErrors = kDenominators + (kOfQueries ? kStages * kPair * 4 : 0);
  static constexpr int kAngles = kErrors + (kOfQueries ? kStages * kPair * 4 : 0);
  static constexpr int kSharedBytes = kAngles + 2 * kAngleBytes;
  static_assert(kStages <= 8 && kAngles % 16 == 0 && kSharedBytes + 1024 <= 233472);

  float after[9][4], before[9][4];  // one part
  float after_power, before_power, pair_decay;
  int half;  // of the pair, and of the state: its part

  __device__ __forceinline__ int own_chunk(int pair) const { return pair + half * kChunk; }

  __device__ __forceinline__ std::uint32_t feature_tile(int stage, int of) const {
    return base + (stage * 2 + of) * 2 * kTile;
  }
  __device__ __forceinline__ std::uint32_t value_tile(int stage, int of) const {
    return feature_tile(stage, of) + kTile;
  }
  __device__ __forceinline__ int extra_tile(int of) const { return kExtras + of * kTile; }
  static constexpr __device__ int extra_piece(int stage) { return kOfQueries ? stage : 0; }
  // Two sets, so that a warp may go on to the next pair while others are at the last one.
  __device__ __forceinline__ Io* weights(int turn_of_loop, int of, bool of_before) const {
    return reinterpret_cast<Io*>(shared + kWeights + ((turn_of_loop % 2 * 2 + of) * 2 + (of_before ? 1 : 0)) * 256);
  }
  __device__ __forceinline__ float* own_numbers(int offset, int stage) const {
    return floats(offset) + stage * kPair + half * kChunk;
  }

  __device__ __forceinline__ void fetch(bool wanted, int stage, int pair) {
    if (wanted) {
      const unsigned seen = present_keys<kMasked>(own_chunk(pair));
      const int begin = kOfQueries ? q_begin : k_begin;
      fetch_half<kMasked>(feature_tile(stage, half), kOfQueries ? w.q : w.k, begin, column_length, seen, own_chunk(pair));
      fetch_half<kMasked>(value_tile(stage, half), kOfQueries ? w.dout : w.v, begin, column_length, seen, own_chunk(pair));
      if (kOfQueries && p.normalised) {
        fetch_row_numbers<true>(own_numbers(kDenominators, stage), own_numbers(kErrors, stage), own_chunk(pair));
      }
    }
    commit_copies();  // a group in any case: waiting counts groups
  }

  // Of queries: what divides this lane's column; and e becomes the extra column.
  __device__ __forceinline__ float prepare_column(int stage) {
    if (!kOfQueries || !p.normalised) return 1.0F;
    const int row = warp * 16 + lane % 16;
    const float s = fmaxf(own_numbers(kDenominators, stage)[row], p.eps);
    if (lane < 16) {
      set_extra(shared + extra_tile(half), extra_piece(stage), row, own_numbers(kErrors, stage)[row] * s);
    }
    return __fdividef(1.0F, s);
  }

  // Leaves what follows `pair`.
  __device__ __forceinline__ void leave(int pair) {
    const std::uint32_t tile = base + kLeaving + half * kTile;
    __syncwarp();
    publish_values(after, tile);
    __syncwarp();
    Io* row = const_cast<Io*>(rows_of(w.after, q_begin, own_chunk(pair), 0));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (piece * 8 < w.after.columns) store_global_16(row, load_shared_16(piece_at(tile, i)));
      row += 4 * static_cast<std::int64_t>(w.after.time_stride);
    }
    float* const extras = after_extras(pair) + half * kChunk + warp * 16 + g;
    if (t == 0) {
      extras[0] = after[8][0] + after[8][1];
      extras[8] = after[8][2] + after[8][3];
    }
  }

  __device__ __forceinline__ void add(float (&state)[9][4], int stage, const A (&low)[4], const A (&high)[4]) {
#pragma unroll
    for (int of = 0; of < 2; ++of) {
      const std::uint32_t tile = value_tile(stage, of);
      const std::uint64_t values =
          wgmma::descriptor(tile, base + extra_tile(of) + extra_piece(stage) * 16 - tile);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<true>(state, of == 0 ? low[k] : high[k], wgmma::step_along_rows(values, k), true);
      }
    }
  }

  __device__ __forceinline__ void run() {
    locate<false, !kOfQueries>();
    half = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
    const auto [begin, end, last_segment] = span();
    const int pairs = max(end - begin + kPair - 1, 0) / kPair;
    const auto pair_at = [&](int turn_of_loop) { return begin + (pairs - 1 - turn_of_loop) * kPair; };
    for (int i = 0; i < kAhead; ++i) fetch(i < pairs, i, pair_at(i));
    take_angles();
    unsigned char* const angles = shared + kAngles + half * kAngleBytes;
    keep_angles<true>(angles, kPair);
    const float log = log_decay();
    const int row = half * kChunk + warp * 16 + lane % 16;
    after_power = decay_of(log, row);
    before_power = decay_of(log, kPair - 1 - row);
    pair_decay = decay_of(log, kPair);
    clear_block(after);
    clear_block(before);
    clear_tile(extra_tile(half));
    if (!kOfQueries && threadIdx.x % 128 < kChunk) set_one(shared + extra_tile(half), 0, threadIdx.x % 128);

    A raw[2][2][2];
    int stage = 0;
    const auto make_ready = [&](int at) {
      wait_copies<kAhead - 1>();
      __syncwarp();  // what other lanes copied
      const float scale = prepare_column(stage);
      follow_turn(own_chunk(pair_at(at)), at % kExactEvery == 0, angles);
      if (lane < 16) {
        set_column(weights(at, half, false), row % kChunk, after_power * scale);
      } else if (kSegments) {
        set_column(weights(at, half, true), row % kChunk, before_power * scale * growth);
      }
      growth *= pair_decay;
      wgmma::publish_shared();
      __syncthreads();
      fetch(at + kAhead < pairs, (stage + kAhead) % kStages, pair_at(at + kAhead));
#pragma unroll
      for (int of = 0; of < 2; ++of) load_raw_features(raw[of], feature_tile(stage, of));
    };
    if (pairs > 0) make_ready(0);
    for (int at = 0; at < pairs; ++at) {
      A low[4], high[4], low_before[4], high_before[4];
      weigh_whole_part(low, raw[0], weights(at, 0, false), half);
      weigh_whole_part(high, raw[1], weights(at, 1, false), half);
      if (pair_decay != 1.0F) scale_block(after, pair_decay);
      wgmma::fence();
      add(after, stage, low, high);
      wgmma::commit();
      if constexpr (kSegments) {
        weigh_whole_part(low_before, raw[0], weights(at, 0, true), half);
        weigh_whole_part(high_before, raw[1], weights(at, 1, true), half);
        wgmma::fence();
        add(before, stage, low_before, high_before);
        wgmma::commit();
      }
      stage = stage + 1 == kStages ? 0 : stage + 1;
      if (at + 1 < pairs) make_ready(at + 1);
      wgmma::wait<0>();
      wgmma::settle(after);
      if constexpr (kSegments) wgmma::settle(before);
      if (at + 1 < pairs) leave(pair_at(at + 1));
    }
    if constexpr (kSegments) {
      add_rests(after);
      store_block(after, slot_in(w.after_segments, p.slots, segment), half, 0, 0);
      add_rests(before);
      store_block(before, slot_in(p.states, p.slots, segment), half, 0, 0);
    }
  }
};

}  // namespace cosformer::kernels::cuda
