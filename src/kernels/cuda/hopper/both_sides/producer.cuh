// The warpgroup that prepares pairs of chunks for the sweep over both sides: a warp its own 16 rows of every tile.
#pragma once

#include "kernels/cuda/hopper/both_sides/layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct BothSidesProducer : BothSidesWarpgroup<L> {
  using Base = BothSidesWarpgroup<L>;
  using Base::base, Base::lane, Base::p, Base::shared, Base::w, Base::warp;
  using Base::Base;
  using Base::kChunk, Base::kPair;
  using typename Base::Io;
  float before_power[2], after_power[2];  // of this lane's row, or column, in each half
  Turn turns[2];

  __device__ __forceinline__ void copy(int tile, const TileSource& source, int length, unsigned seen, int chunk) {
    this->template fetch_half<L::kMasked>(base + tile, source, this->q_begin, length, seen, chunk);
  }

  __device__ __forceinline__ void fetch(int stage, int pair, int end) {
    const bool follows = pair + kPair < end;
    for (int half = 0; half < 2; ++half) {
      const int chunk = pair + half * kChunk;
      const unsigned keys = this->template present_keys<L::kMasked>(chunk);
      const unsigned rows = L::kRowsAreQueries ? 15U : keys, columns = L::kRowsAreQueries ? keys : 15U;
      const int row_length = this->row_length, column_length = this->column_length;  // the same
      copy(L::feature_tile(stage, half), L::kRowsAreQueries ? w.k : w.q, column_length, columns, chunk);
      copy(L::value_tile(stage, half), L::kRowsAreQueries ? w.v : w.dout, column_length, columns, chunk);
      copy(L::row_tile(stage, half), L::kForward ? w.q : (L::kQueries ? w.dout : w.v), row_length, rows, chunk);
      if constexpr (L::kKeys) copy(L::row_tile(stage, half) + L::kTile, w.k, row_length, rows, chunk);
      copy(L::after_tile(stage, half), w.after, follows ? row_length : 0, 15U, chunk);
      if (lane < 16) {
        const int row = warp * 16 + lane;
        copy_async<4>(shared_address(this->numbers(L::kAfterExtras, stage, half) + row),
                      follows ? this->after_extras(pair) + half * kChunk + row : w.after_extras, follows);
      }
      if (!L::kForward && p.normalised) {
        if constexpr (L::kQueries) copy(L::prior_tile(half), w.out, row_length, 15U, chunk);
        this->template fetch_row_numbers<L::kKeys>(this->numbers(L::kDenominators, stage, half),
                                                   this->numbers(L::kErrors, stage, half), chunk);
      }
    }
    commit_copies();
  }

  // The queries, which their gradients want in the middle of a pair.
  __device__ __forceinline__ void fetch_own(int pair) {
    if constexpr (L::kQueries) {
      for (int half = 0; half < 2; ++half) {
        this->template fetch_half<false>(base + L::own_tile(half), w.q, this->q_begin, this->row_length, 15U,
                                         pair + half * kChunk);
      }
      mbarrier::arrive_when_copied(base + L::own_full());
    }
  }

  // What follows the segment joins what follows the pair within it.
  __device__ __forceinline__ void add_beyond(int stage, int half, float factor) {
#pragma unroll 2
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t at = this->piece_at(base + L::after_tile(stage, half), i);
      const uint4 beyond = load_shared_16(this->piece_at(base + L::beyond_tile(half), i));
      store_shared_16(at, add_scaled(load_shared_16(at), beyond, factor));
    }
  }

  // e = −dout·out and 1/s of the queries; e is 0 where the denominator was clamped.
  __device__ __forceinline__ void prepare_errors(int stage, int half, int chunk) {
    float* const row_dots = this->numbers(L::kRowDots, 0, half);
    if (p.normalised) {
      float dots[4] = {};
      this->add_dots(base + L::row_tile(stage, half), base + L::prior_tile(half), dots);
      this->finish_dots(dots, row_dots);
    }
    if (lane < 16) {
      const int row = warp * 16 + lane;
      float2 numbers = {0.0F, 1.0F};
      if (p.normalised) {
        numbers = this->error_and_scale(this->numbers(L::kDenominators, stage, half)[row], row_dots[row]);
        this->keep_error(chunk, row, numbers);
      }
      this->row_errors(stage, half)[row] = numbers;
    }
  }

  __device__ __forceinline__ void prepare(int stage, int half, int pair, bool exact, bool goes_on, float factor) {
    const int chunk = pair + half * kChunk, row = warp * 16 + lane % 16;
    this->turn = turns[half];
    this->follow_turn(chunk, exact, shared + L::kAngles);
    const Turn turn = turns[half] = this->turn;
    const float before = before_power[half], after = after_power[half];
    if (lane < 16) {
      this->row_turns(stage, half)[row] = {turn.cosine * before, turn.sine * before, turn.cosine * after,
                                           turn.sine * after};
    } else {
      this->set_column(this->weights(stage, half), row, before);
    }
    const float* denominators = this->numbers(L::kDenominators, stage, half);
    this->template prepare_features<L::kKeys>(base + L::feature_tile(stage, half), denominators);
    if (L::kKeys && p.normalised && lane < 16) {
      this->set_extra(shared + L::kColumnExtras, L::column_piece(stage, half), row,
                      this->numbers(L::kErrors, stage, half)[row] * fmaxf(denominators[row], p.eps));
    }
    float extra = this->numbers(L::kAfterExtras, stage, half)[row];
    if (goes_on) {
      extra += factor * this->numbers(L::kBeyondExtras, 0, half)[row];
      add_beyond(stage, half, factor);
    }
    if (lane < 16) this->set_state_extra(L::after_piece(stage), half, row, extra);
    if constexpr (L::kQueries) prepare_errors(stage, half, chunk);
  }

  // What follows the segment, rounded as the states after pairs are.
  __device__ __forceinline__ void take_beyond() {
    const float* from = this->slot_in(w.after_segments, p.slots, this->segment);
    const int row = static_cast<int>(threadIdx.x) / 2, first = static_cast<int>(threadIdx.x) % 2 * 32;
    for (int part = 0; part < 2; ++part) {
      for (int u = first; u < first + 32; u += 2) {
        const bool inside = row < p.dim && u < p.value_dim;
        const float2 pair = inside ? load_pair(from + (part * p.dim + row) * p.value_dim + u) : float2{};
        *reinterpret_cast<std::uint32_t*>(shared + L::beyond_tile(part) + 2 * swizzled_offset(kChunk, row, u)) =
            pack_bf16(pair.x, pair.y);
      }
      if (first == 0) {
        this->numbers(L::kBeyondExtras, 0, part)[row] =
            row < p.dim ? from[2 * p.dim * p.value_dim + part * p.dim + row] : 0.0F;
      }
    }
  }

  __device__ __forceinline__ void run() {
    this->template locate<false, L::kRowsAreQueries>();
    const auto chunks = this->span();
    const int begin = chunks.begin, end = chunks.end;
    if (begin < end) {
      fetch(0, begin, end);
      fetch_own(begin);
    }
    this->take_angles();
    this->template keep_angles<false>(shared + L::kAngles, kPair);
    const float log = this->log_decay(), log2 = log * 1.4426950408889634F;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = half * kChunk + warp * 16 + lane % 16;
      before_power[half] = lane < 16 ? decay_of(log, row + 1) : decay_of(log, kPair - 1 - row);
      after_power[half] = decay_of(log, kPair - row);
    }
    this->clear_tile(L::kExtras);
    if (L::kKeys) this->clear_tile(L::kColumnExtras);
    if (L::kRowsAreQueries && threadIdx.x < kChunk) this->set_one(shared + L::kColumnExtras, 0, threadIdx.x);
    if (!chunks.last) take_beyond();
    wgmma::publish_shared();
    __syncthreads();  // the rows' warpgroups may set the states' extra columns
    int number = 0;
    for (int pair = begin; pair < end; pair += kPair, ++number) {
      const int stage = number % 2, tokens = end - pair - kPair;
      const float factor = tokens <= 0 ? 1.0F : exp2f(log2 * static_cast<float>(tokens));
      wait_copies<0>();
      __syncwarp();  // what other lanes copied
      const bool exact = number % Base::kExactEvery == 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) prepare(stage, half, pair, exact, !chunks.last, factor);
      wgmma::publish_shared();
      this->arrive(L::full(stage));
      if (number > 0) {
        this->wait(L::free(1 - stage), (number - 1) / 2);
        fetch_own(pair);
      }
      if (pair + kPair < end) fetch(1 - stage, pair + kPair, end);
    }
  }
};

}  // namespace cosformer::kernels::cuda
