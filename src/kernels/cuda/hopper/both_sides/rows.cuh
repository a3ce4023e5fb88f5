// The two warpgroups that have the rows of a pair, and the running state, in the sweep over both sides.
#pragma once

#include "kernels/cuda/hopper/both_sides/layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct BothSidesRows : BothSidesWarpgroup<L> {
  using Base = BothSidesWarpgroup<L>;
  using Base::base, Base::g, Base::lane, Base::p, Base::shared, Base::t, Base::w, Base::warp;
  using Base::Base;
  using Base::kChunk, Base::kPair;
  using typename Base::A;
  int half;  // of the pair, and of the state: its part
  float state[9][4];
  float pair_decay;

  __device__ __forceinline__ double& decay_sum() const {
    return reinterpret_cast<double*>(shared + L::kDecaySums)[threadIdx.x % L::kRowThreads];
  }
  __device__ __forceinline__ float* table_start() const { return reinterpret_cast<float*>(shared + L::kDistances); }
  // Of both halves' warpgroups.
  __device__ __forceinline__ void sync_other() { sync_named_barrier<4, L::kRowThreads>(); }

  // Addresses are made anew from here on: kept ones would cost gradients registers that they do not have.
  __device__ __forceinline__ void forget_addresses() {
    if constexpr (!L::kForward) forget(Base::warp, Base::lane, Base::g, Base::t);
  }

  // cos(θΔ)γ^|Δ| at entry kPair − Δ, and once more shifted by one. Columns of the other half are 64 entries further.
  __device__ __forceinline__ void build_table() {
    const float log = this->log_decay();
    for (int i = threadIdx.x % L::kRowThreads; i < L::kTableSize; i += L::kRowThreads) {
      const int distance = abs(kPair - i);
      const float weight = turn_of(this->theta, distance).cosine * decay_of(log, distance);
      table_start()[i] = weight;
      if (i > 0) table_start()[L::kSecondTable + i - 1] = weight;
    }
  }
  // Scores with the columns of this half or of the other one, as operands.
  __device__ __forceinline__ void weigh_scores(bool own, const float (&scores)[8][4], A (&weights)[4]) {
    const float* table = table_start() + kChunk + (own ? 0 : (half == 0 ? kChunk : -kChunk));
    this->template weigh<L::kSecondTable>(table, scores, weights);
  }

  // The other half reads the state's tile no more, and this one's products with it have ended.
  __device__ __forceinline__ void publish_state() {
    this->publish_values(state, base + L::state_tile(half));
    if (t == 0) {
      this->set_state_extra(L::kStatePiece, half, warp * 16 + g, state[8][0] + state[8][1]);
      this->set_state_extra(L::kStatePiece, half, warp * 16 + g + 8, state[8][2] + state[8][3]);
    }
    wgmma::publish_shared();
  }

  // Rows of features times both parts of a state.
  template <int kTiles>
  __device__ __forceinline__ void times_state(const A (&cosine)[4], const A (&sine)[4], int tile, int other_tile,
                                              int piece, bool add, float (&out)[kTiles][4]) {
    const std::uint64_t of_cosine = wgmma::descriptor(base + tile, L::state_extra(piece, 0) - tile);
    const std::uint64_t of_sine = wgmma::descriptor(base + other_tile, L::state_extra(piece, 1) - other_tile);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma::multiply<true>(out, cosine[k], wgmma::step_along_rows(of_cosine, k), add || k > 0);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, sine[k], wgmma::step_along_rows(of_sine, k), true);
  }
  // Rows of values, and the number beyond them, times both parts of a transposed state.
  __device__ __forceinline__ void times_transposed(const A (&cosine)[4], const A (&sine)[4], const A& last, int tile,
                                                   int other_tile, int piece, bool add, float (&out)[8][4]) {
    const std::uint64_t of_cosine = wgmma::descriptor(base + tile), of_sine = wgmma::descriptor(base + other_tile);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma::multiply<false>(out, cosine[k], wgmma::step_along_columns(of_cosine, kChunk, k), add || k > 0);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma::multiply<false>(out, sine[k], wgmma::step_along_columns(of_sine, kChunk, k), true);
    }
    wgmma::multiply<false>(out, last, wgmma::descriptor(base + L::state_extra(piece, 0)), true);
  }
  // The number beyond a row's values times its cosine and sine as one operand: extra_operand for both parts.
  __device__ __forceinline__ A extra_of_parts(float cosine0, float sine0, float cosine1, float sine1) const {
    const std::uint32_t a = head_and_rest(t < 2 ? cosine0 : sine0), b = head_and_rest(t < 2 ? cosine1 : sine1);
    const std::uint32_t pick = t % 2 == 0 ? 0x1010U : 0x3232U;
    return A{{__byte_perm(a, 0U, pick), __byte_perm(b, 0U, pick), 0U, 0U}};
  }

  // The decay's gradient from pairs of tokens within the pair: distance times score times the other product's weighted
  // score. `offset`: from this half's tokens to the columns'.
  __device__ __forceinline__ void count_within(const float (&scores)[8][4], const A (&other)[4], int offset) {
    float sum = 0.0F;
    const float first = static_cast<float>(anew(warp * 16 + g - 2 * t) - offset);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t pair = other[n / 2].r[n % 2 * 2 + i];
        const float distance = first + static_cast<float>(8 * i - n * 8);
        sum += fabsf(distance) * scores[n][2 * i] * low_of(pair);
        sum += fabsf(distance - 1.0F) * scores[n][2 * i + 1] * high_of(pair);
      }
    decay_sum() += sum;
  }

  // This half's part of the state takes in the whole pair. Under way when this returns.
  __device__ __forceinline__ void update(int stage) {
    if (pair_decay != 1.0F) this->scale_block(state, pair_decay);
    A features[2][4];
#pragma unroll
    for (int of = 0; of < 2; ++of) {
      A raw[2][2];
#pragma unroll
      for (int k = 0; k < 4; ++k) this->load_transposed(raw[k / 2][k % 2], base + L::feature_tile(stage, of), k);
      this->weigh_all_of_part(features[of], raw, this->weights(stage, of), half);
    }
    wgmma::fence();
#pragma unroll
    for (int of = 0; of < 2; ++of) {
      const int tile = L::value_tile(stage, of);
      const std::uint64_t values = wgmma::descriptor(base + tile, L::column_extra(stage, of) - tile);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<true>(state, features[of][k], wgmma::step_along_rows(values, k), true);
      }
    }
    wgmma::commit();
  }
  // The state is ready for the next pair, as soon as both halves have got here.
  __device__ __forceinline__ void renew_state() {
    wgmma::settle(state);
    forget_addresses();
    sync_other();
    publish_state();
  }

  // Rows of features: out = φ(x)·states + weights·[values, extra], and the pair joins the state. The two halves' scores
  // take turns in the same registers.
  template <int kTiles>
  __device__ __forceinline__ void value_rows(int stage, int tile, const A (&near_other)[4], const A (&far_other)[4],
                                             float (&out)[kTiles][4]) {
    const float4* turns = this->row_turns(stage, half) + warp * 16 + g;
    stage = anew(stage);
    const auto add_values = [&](int of, const A(&of_columns)[4]) {
      const int values_at = L::value_tile(stage, of);
      const std::uint64_t values = wgmma::descriptor(base + values_at, L::column_extra(stage, of) - values_at);
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, of_columns[k], wgmma::step_along_rows(values, k), true);
      wgmma::commit();
    };
    A far_weights[4];
    {
      A x[4], cosine[4], sine[4], near_weights[4];
      float scores[8][4];
      this->load_rows(x, base + tile, true);
      const auto begin_scores = [&](int of) {
        const std::uint64_t features = wgmma::descriptor(base + L::feature_tile(stage, of));
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          wgmma::multiply<false>(scores, x[k], wgmma::step_along_columns(features, kChunk, k), k > 0);
        }
        wgmma::commit();
      };
      begin_scores(half);
      scale_rows(cosine, x, turns[0].x, turns[8].x);
      scale_rows(sine, x, turns[0].y, turns[8].y);
      if constexpr (L::kForward) sync_other();  // the state is there
      wgmma::fence();
      times_state(cosine, sine, L::state_tile(0), L::state_tile(1), L::kStatePiece, false, out);
      wgmma::commit();
      wgmma::wait<1>();
      wgmma::settle(scores);
      forget_addresses();
      if constexpr (L::kKeys) count_within(scores, near_other, 0);
      weigh_scores(true, scores, near_weights);
      begin_scores(1 - half);
      add_values(half, near_weights);
      wgmma::wait<1>();
      wgmma::settle(scores);
      forget_addresses();
      if constexpr (L::kKeys) count_within(scores, far_other, half == 0 ? kChunk : -kChunk);
      weigh_scores(false, scores, far_weights);
    }
    stage = anew(stage);
    forget_addresses();
    add_values(1 - half, far_weights);
    update(stage);
    forget_addresses();
    turns = this->row_turns(stage, half) + warp * 16 + g;
    A x[4], cosine[4], sine[4];  // rows are loaded once more: registers
    this->load_rows(x, base + tile, true);
    scale_rows(cosine, x, turns[0].z, turns[8].z);
    scale_rows(sine, x, turns[0].w, turns[8].w);
    wgmma::fence();
    times_state(cosine, sine, L::after_tile(stage, 0), L::after_tile(stage, 1), L::after_piece(stage), true, out);
    wgmma::commit();
    wgmma::wait<1>();  // the products with the running state, and its update
    renew_state();
    wgmma::wait<0>();
    wgmma::settle(out);
    forget_addresses();
  }

  // Rows of values: out = [x, error]·statesᵀ + weights·features; what each side's state gave counts towards the decay's
  // gradient.
  __device__ __forceinline__ void feature_rows(int stage, int tile, int own, int chunk, const float (&error)[2],
                                               const float (&scale)[2], unsigned own_round, A (&near_weights)[4],
                                               A (&far_weights)[4], float (&out)[8][4]) {
    const float4* turns = this->row_turns(stage, half) + warp * 16 + g;
    // What the pair itself gives has accumulators of its own and is begun early: kept weights would wait as two numbers
    // each, since the compiler packs them where they are used.
    float within[8][4], from_before[2], from_both[2];
    const auto add_features = [&](int of, const A(&of_columns)[4], bool add) {
      const std::uint64_t features = wgmma::descriptor(base + L::feature_tile(stage, of));
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<true>(within, of_columns[k], wgmma::step_along_rows(features, k), add || k > 0);
      }
      wgmma::commit();
    };
    {
      A x[4], cosine[4], sine[4];
      float scores[8][4];
      this->load_rows(x, base + tile, false);
      const A last = L::kKeys ? this->ones_operand() : this->extra_operand(error[0], error[1]);
      const auto begin_scores = [&](int of) {
        const std::uint64_t values = wgmma::descriptor(base + L::value_tile(stage, of));
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          wgmma::multiply<false>(scores, x[k], wgmma::step_along_columns(values, kChunk, k), k > 0);
        }
        wgmma::multiply<false>(scores, last, wgmma::descriptor(base + L::column_extra(stage, of)), true);
        wgmma::commit();
      };
      begin_scores(half);
      const float4 turn0 = turns[0], turn1 = turns[8];
      scale_rows(cosine, x, turn0.x, turn1.x);
      scale_rows(sine, x, turn0.y, turn1.y);
      const A last_before =
          extra_of_parts(error[0] * turn0.x, error[0] * turn0.y, error[1] * turn1.x, error[1] * turn1.y);
      sync_other();  // the state is there
      wgmma::fence();
      times_transposed(cosine, sine, last_before, L::state_tile(0), L::state_tile(1), L::kStatePiece, false, out);
      wgmma::commit();
      wgmma::wait<1>();
      wgmma::settle(scores);
      forget_addresses();
      weigh_scores(true, scores, near_weights);
      wgmma::wait<0>();
      wgmma::settle(out);
      begin_scores(1 - half);
      add_features(half, near_weights, false);
      forget_addresses();
      if constexpr (L::kQueries) this->wait(L::own_full(), own_round);
      this->dots_with_features(base + own, out, from_before);
      wgmma::wait<1>();
      wgmma::settle(scores);
      forget_addresses();
      weigh_scores(false, scores, far_weights);
    }
    stage = anew(stage);
    add_features(1 - half, far_weights, true);
    A x[4], cosine[4], sine[4];  // rows are loaded once more: registers
    forget_addresses();
    this->load_rows(x, base + tile, false);
    turns = this->row_turns(stage, half) + warp * 16 + g;
    const float4 turn0 = turns[0], turn1 = turns[8];
    scale_rows(cosine, x, turn0.z, turn1.z);
    scale_rows(sine, x, turn0.w, turn1.w);
    const A last_after = extra_of_parts(error[0] * turn0.z, error[0] * turn0.w, error[1] * turn1.z, error[1] * turn1.w);
    wgmma::fence();
    times_transposed(cosine, sine, last_after, L::after_tile(stage, 0), L::after_tile(stage, 1), L::after_piece(stage),
                     true, out);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::settle(within);
    wgmma::settle(out);
    forget_addresses();
    if constexpr (L::kQueries) update(anew(stage));
    forget_addresses();
    this->dots_with_features(base + own, out, from_both);
    const float dots[2] = {2.0F * from_before[0] - from_both[0], 2.0F * from_before[1] - from_both[1]};
    decay_sum() += this->decay_of_rows(chunk, scale, dots);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] += within[n][i];
  }

  template <int kTiles>
  __device__ __forceinline__ void write(int tile, std::uint32_t own, const Destination& to, int chunk,
                                        const float (&scale)[2], float (&out)[kTiles][4]) {
    this->template write_rows<kTiles, L::kForward, L::kRowsAreQueries, false>(
        base + tile, own, 0U, this->target_of(to, this->q_begin, chunk), nullptr, scale, out);
  }

  __device__ __forceinline__ void compute(int stage, int chunk, unsigned own_round) {
    const int x = L::row_tile(stage, half);
    float error[2] = {1.0F, 1.0F}, scale[2] = {1.0F, 1.0F};
    A near_weights[4] = {}, far_weights[4] = {};
    if constexpr (L::kForward) {
      float out[9][4];
      value_rows(stage, x, near_weights, far_weights, out);
      const float sums[2] = {__shfl_sync(0xffffffffU, out[8][0] + out[8][1], g * 4),
                             __shfl_sync(0xffffffffU, out[8][2] + out[8][3], g * 4)};
      this->template forward_scale<false>(chunk, sums, nullptr, scale);
      write(x, 0U, w.first, chunk, scale, out);
    } else {
      const int own = L::kKeys ? x + L::kTile : L::own_tile(half);
      {
        float out[8][4];
        if constexpr (L::kQueries) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float2 numbers = this->row_errors(stage, half)[warp * 16 + g + 8 * i];
            error[i] = numbers.x;
            scale[i] = numbers.y;
          }
        }
        feature_rows(stage, x, own, chunk, error, scale, own_round, near_weights, far_weights, out);
        write(x, base + own, w.first, chunk, scale, out);
      }
      if constexpr (L::kQueries) {
        wgmma::wait<0>();
        renew_state();
      } else {
        float out[8][4];
        value_rows(stage, own, near_weights, far_weights, out);
        write(own, 0U, w.second, chunk, scale, out);
      }
    }
  }

  __device__ __forceinline__ void write_decay_gradient() {
    const double sum = sum_over_warp(decay_sum());
    double* const sums = reinterpret_cast<double*>(shared + L::kDecaySums);
    sync_other();
    if (lane == 0) sums[half * 4 + warp] = sum;
    sync_other();
    if (threadIdx.x % L::kRowThreads != 0 || p.decay_gradient == nullptr) return;
    double total = 0.0;
    for (int i = 0; i < 8; ++i) total += sums[i];
    p.decay_gradient[blockIdx.x] = total;
  }

  // `number` of the half.
  __device__ __forceinline__ void run(int number) {
    half = number;
    this->template locate<false, L::kRowsAreQueries>();
    const auto chunks = this->span();
    this->take_angles();
    if constexpr (!L::kForward) decay_sum() = 0.0;
    pair_decay = decay_of(this->log_decay(), kPair);
    build_table();
    this->load_block(state, this->initial_slot(), half, 0, 0);
    __syncthreads();  // the extra columns' tiles have been cleared
    publish_state();
    RingTurn<L::kStages> at;
    unsigned turn_of_loop = 0;
    for (int pair = chunks.begin; pair < chunks.end; pair += kPair, ++turn_of_loop) {
      this->wait(L::full(at.stage), at.round);
      compute(at.stage, pair + half * kChunk, turn_of_loop);
      this->arrive(L::free(at.stage));
      at.advance();
    }
    if constexpr (!L::kForward) write_decay_gradient();
  }
};

}  // namespace cosformer::kernels::cuda
