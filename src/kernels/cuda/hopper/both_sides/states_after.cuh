// The states after the pairs of a segment (chunk_pairs.cuh), last pair first, and where segments follow each other
// the sums over the whole segment: as of its first token, and as of its last one.
//
// Three warpgroups: one fetches pairs and makes the columns' weights, each of the others has one part of the states.
#pragma once

#include "kernels/cuda/hopper/both_sides/chunk_pairs.cuh"

namespace cosformer::kernels::cuda {

// kSegments: there are several.
template <bool kOfQueries_, bool kMasked_, bool kSegments_>
struct AfterLayout {
  static constexpr bool kOfQueries = kOfQueries_, kMasked = kMasked_, kSegments = kSegments_;
  static constexpr int kThreads = 384, kMinBlocks = 1, kStages = 5;
  static constexpr int kProducerRegisters = 72, kSumRegisters = 216;
  static_assert(kProducerRegisters + 2 * kSumRegisters <= 65536 / kThreads / 8 * 8 * 3);

  // Shared memory: stages (features and values of each half), a state on its way out, the values' extra column of each
  // half (ones, or e with a piece for each stage), and for each stage the columns' weights (of each half, for both
  // sums), and of queries denominators and e.
  static constexpr int kTile = HopperPlace::kTile, kPair = ChunkPairs::kPair;
  static constexpr int kLeaving = kStages * 4 * kTile;
  static constexpr int kExtras = kLeaving + 2 * kTile;
  static constexpr int kWeights = kExtras + 2 * kTile;
  static constexpr int kDenominators = kWeights + kStages * 4 * 256;
  static constexpr int kErrors = kDenominators + (kOfQueries ? kStages * kPair * 4 : 0);
  static constexpr int kAngles = kErrors + (kOfQueries ? kStages * kPair * 4 : 0);
  static constexpr int kBarriers = kAngles + HopperPlace::kAngleBytes;
  static constexpr int kSharedBytes = kBarriers + 2 * kStages * 8;
  static_assert(kStages <= 8 && kAngles % 16 == 0 && kSharedBytes + 1024 <= 233472);

  static constexpr __device__ int feature_tile(int stage, int half) { return (stage * 2 + half) * 2 * kTile; }
  static constexpr __device__ int value_tile(int stage, int half) { return feature_tile(stage, half) + kTile; }
  static constexpr __device__ int leaving_tile(int part) { return kLeaving + part * kTile; }
  static constexpr __device__ int extra_tile(int half) { return kExtras + half * kTile; }
  static constexpr __device__ int extra_piece(int stage) { return kOfQueries ? stage : 0; }
  static constexpr __device__ int weights(int stage, int half, bool before) {
    return kWeights + (stage * 4 + half * 2 + (before ? 1 : 0)) * 256;
  }
  static constexpr __device__ int full(int stage) { return kBarriers + stage * 8; }
  static constexpr __device__ int free(int stage) { return kBarriers + (kStages + stage) * 8; }
};

// What producer and consumers share.
template <class L>
struct AfterWarpgroup : ChunkPairs {
  using ChunkPairs::ChunkPairs;
  int first, pairs;  // of the segment

  __device__ __forceinline__ void place() {
    locate<false, !L::kOfQueries>();
    const auto chunks = span();
    first = chunks.begin;
    pairs = max(chunks.end - chunks.begin + kPair - 1, 0) / kPair;
  }
  // The pair that comes at a turn of the loop.
  __device__ __forceinline__ int pair_at(int number) const { return first + (pairs - 1 - number) * kPair; }
  __device__ __forceinline__ Io* weights(int stage, int half, bool before) const {
    return reinterpret_cast<Io*>(shared + L::weights(stage, half, before));
  }
};

template <class L>
struct AfterProducer : AfterWarpgroup<L> {
  using Base = AfterWarpgroup<L>;
  using Base::base, Base::lane, Base::p, Base::pairs, Base::shared, Base::w, Base::warp;
  using Base::Base;
  using Base::kChunk, Base::kPair;
  float after_power[2], before_power[2];  // of this lane's column in each half
  Turn turns[2];

  __device__ __forceinline__ float* numbers(int offset, int stage, int half) const {
    return reinterpret_cast<float*>(shared + offset) + stage * kPair + half * kChunk;
  }

  __device__ __forceinline__ void fetch(int stage, int pair) {
    for (int half = 0; half < 2; ++half) {
      const int chunk = pair + half * kChunk;
      const unsigned seen = this->template present_keys<L::kMasked>(chunk);
      const auto copy = [&](int tile, const TileSource& source) {
        this->template fetch_half<L::kMasked>(base + tile, source, this->q_begin, this->column_length, seen, chunk);
      };
      copy(L::feature_tile(stage, half), L::kOfQueries ? w.q : w.k);
      copy(L::value_tile(stage, half), L::kOfQueries ? w.dout : w.v);
      if (L::kOfQueries && p.normalised) {
        this->template fetch_row_numbers<true>(numbers(L::kDenominators, stage, half), numbers(L::kErrors, stage, half),
                                               chunk);
      }
    }
  }

  // Of queries: what divides this lane's column; and e becomes the extra column.
  __device__ __forceinline__ float prepare_column(int stage, int half, int row) {
    if (!L::kOfQueries || !p.normalised) return 1.0F;
    const float s = fmaxf(numbers(L::kDenominators, stage, half)[row], p.eps);
    if (lane < 16) {
      this->set_extra(shared + L::extra_tile(half), L::extra_piece(stage), row,
                      numbers(L::kErrors, stage, half)[row] * s);
    }
    return __fdividef(1.0F, s);
  }

  __device__ __forceinline__ void prepare(int stage, int half, int pair, bool exact) {
    const int row = warp * 16 + lane % 16;
    const float scale = prepare_column(stage, half, row);
    this->turn = turns[half];
    this->follow_turn(pair + half * kChunk, exact, shared + L::kAngles);
    turns[half] = this->turn;
    if (lane < 16) {
      this->set_column(this->weights(stage, half, false), row, after_power[half] * scale);
    } else if (L::kSegments) {
      this->set_column(this->weights(stage, half, true), row, before_power[half] * this->growth * scale);
    }
  }

  __device__ __forceinline__ void run() {
    this->place();
    constexpr int kAhead = L::kStages - 1;
    for (int i = 0; i < kAhead; ++i) {
      if (i < pairs) fetch(i, this->pair_at(i));
      commit_copies();  // a group in any case: waiting counts groups
    }
    this->take_angles();
    this->template keep_angles<true>(shared + L::kAngles, kPair);
    const float log = this->log_decay(), pair_decay = decay_of(log, kPair);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = half * kChunk + warp * 16 + lane % 16;
      after_power[half] = decay_of(log, row);
      before_power[half] = decay_of(log, kPair - 1 - row);
      this->clear_tile(L::extra_tile(half));
      if (!L::kOfQueries && threadIdx.x < kChunk) this->set_one(shared + L::extra_tile(half), 0, threadIdx.x);
    }
    RingTurn<L::kStages> ring;
    for (int number = 0; number < pairs; ++number) {
      const int stage = ring.stage, before = stage == 0 ? L::kStages - 1 : stage - 1;
      wait_copies<kAhead - 1>();
      __syncwarp();  // what other lanes copied
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        prepare(stage, half, this->pair_at(number), number % Base::kExactEvery == 0);
      }
      this->growth *= pair_decay;
      wgmma::publish_shared();
      this->arrive(L::full(stage));
      if (number + kAhead < pairs) {
        if (number > 0) this->wait(L::free(before), ring.round - (stage == 0 ? 1 : 0));
        fetch(before, this->pair_at(number + kAhead));
      }
      commit_copies();
      ring.advance();
    }
  }
};

template <class L>
struct AfterSummer : AfterWarpgroup<L> {
  using Base = AfterWarpgroup<L>;
  using Base::base, Base::g, Base::p, Base::pairs, Base::t, Base::w, Base::warp;
  using Base::Base;
  using typename Base::A;
  using typename Base::Io;
  float after[9][4], before[9][4];
  int part;

  // What has been summed so far follows `pair`: it goes to shared memory, and from there, while products run, to where
  // it waits.
  __device__ __forceinline__ void stage_state(int pair) {
    this->publish_values(after, base + L::leaving_tile(part));
    float* const extras = this->after_extras(pair) + part * Base::kChunk + warp * 16 + g;
    if (t == 0) {
      extras[0] = after[8][0] + after[8][1];
      extras[8] = after[8][2] + after[8][3];
    }
  }
  __device__ __forceinline__ void leave_state(int pair) {
    __syncwarp();  // what other lanes staged
    Io* row = const_cast<Io*>(this->rows_of(w.after, this->q_begin, pair + part * Base::kChunk, 0));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint4 numbers = load_shared_16(this->piece_at(base + L::leaving_tile(part), i));
      if (this->piece * 8 < w.after.columns) store_global_16(row, numbers);
      row += 4 * static_cast<std::int64_t>(w.after.time_stride);
    }
    __syncwarp();
  }

  __device__ __forceinline__ void add(float (&state)[9][4], int stage, const A (&raw)[2][2][2], bool of_before) {
    A features[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      this->weigh_all_of_part(features[half], raw[half], this->weights(stage, half, of_before), part);
    }
    wgmma::fence();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile = L::value_tile(stage, half);
      const std::uint64_t values =
          wgmma::descriptor(base + tile, L::extra_tile(half) + L::extra_piece(stage) * 16 - tile);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<true>(state, features[half][k], wgmma::step_along_rows(values, k), true);
      }
    }
    wgmma::commit();
  }

  __device__ __forceinline__ void run(int number_of_part) {
    part = number_of_part;
    this->place();
    const float pair_decay = decay_of(this->log_decay(), Base::kPair);
    this->clear_block(after);
    this->clear_block(before);
    A raw[2][2][2];
    RingTurn<L::kStages> at;
    const auto begin_pair = [&] {
      this->wait(L::full(at.stage), at.round);
#pragma unroll
      for (int half = 0; half < 2; ++half) this->load_raw_features(raw[half], base + L::feature_tile(at.stage, half));
    };
    if (pairs > 0) begin_pair();
    for (int number = 0; number < pairs; ++number) {
      const int stage = at.stage;
      if (pair_decay != 1.0F) this->scale_block(after, pair_decay);
      add(after, stage, raw, false);
      if constexpr (L::kSegments) add(before, stage, raw, true);
      if (number > 0) leave_state(this->pair_at(number));
      at.advance();
      if (number + 1 < pairs) begin_pair();
      wgmma::wait<0>();
      wgmma::settle(after);
      if constexpr (L::kSegments) wgmma::settle(before);
      this->arrive(L::free(stage));
      if (number + 1 < pairs) stage_state(this->pair_at(number + 1));
    }
    if constexpr (L::kSegments) {
      this->add_rests(after);
      this->store_block(after, this->slot_in(w.after_segments, p.slots, this->segment), part, 0, 0);
      this->add_rests(before);
      this->store_block(before, this->slot_in(p.states, p.slots, this->segment), part, 0, 0);
    }
  }
};

}  // namespace cosformer::kernels::cuda
