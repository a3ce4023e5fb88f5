// The warpgroup that multiplies a wide head's rows.
#pragma once

#include "kernels/cuda/hopper/wide/layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct WideRows : WideWarpgroup {
  using WideWarpgroup::WideWarpgroup;
  float* denominators;  // of the forward pass, from this lane's first row on
  bool keeps_sums;

  // Where no state runs along: puts the sum where the matrix unit can read it.
  __device__ __forceinline__ void publish_sum() {
    clear_tile(L::kStateExtras);
    const float* from = initial_slot();
    const auto publish = [&](int part, int number, auto& block) {
      load_block(block, from, part, L::feature_of(slice, number), L::value_of(slice, number));
      publish_block(block, base + L::state_tile(0, part, number), base + L::kStateExtras,
                    L::state_piece(0, part, number));
    };
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      float first[L::kFirstTiles][4], second[L::kSecondTiles][4];
      publish(part, 0, first);
      publish(part, 1, second);
    }
  }

  // Rows times one part of the state; the first part starts out. kFeatureRows: φ(x)·state, else [x, last]·stateᵀ.
  template <int kTiles>
  __device__ __forceinline__ void multiply_state(int copy, int part, const A (&x)[2][4], const A& last,
                                                 float (&out)[kTiles][4]) {
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int tile = L::state_tile(copy, part, b);
      const std::uint64_t state = wgmma::descriptor(
          base + tile, L::kFeatureRows ? L::kStateExtras + L::state_piece(copy, part, b) * 16 - tile : 16);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<L::kFeatureRows>(
            out, x[b][k],
            L::kFeatureRows ? wgmma::step_along_rows(state, k) : wgmma::step_along_columns(state, kChunk, k),
            part + b + k > 0);
      }
    }
    if constexpr (!L::kFeatureRows) {
      const int extra = L::kStateExtras + L::state_piece(copy, part, 1) * 16;
      wgmma::multiply<false>(out, last, wgmma::descriptor(base + extra), true);
    }
  }

  // Rows against the chunk's columns, under way when this returns.
  __device__ __forceinline__ void begin_scores(int stage, const A (&x)[2][4], const A& last, float (&scores)[8][4]) {
    wgmma::fence();
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const std::uint64_t columns = wgmma::descriptor(base + L::contracted(stage, b));
#pragma unroll
      for (int k = 0; k < 4; ++k)
        wgmma::multiply<false>(scores, x[b][k], wgmma::step_along_columns(columns, kChunk, k), b + k > 0);
    }
    if constexpr (!L::kFeatureRows) {
      wgmma::multiply<false>(scores, last, wgmma::descriptor(base + L::kBlocks + L::block_piece(stage) * 16), true);
    }
    wgmma::commit();
  }

  // The decay's gradient, from pairs of different chunks: rows of φ(own) times what the state gave them.
  __device__ __forceinline__ double& decay_sum() const {
    return reinterpret_cast<double*>(shared + L::kDecaySums)[threadIdx.x % 128];
  }
  __device__ __forceinline__ void count_between_chunks(int stage, int position, const float (&scale)[2],
                                                       float (&out)[8][4]) {
    wgmma::wait<0>();
    wgmma::settle(out);
    float dots[2];
    dots_with_features(base + L::own_tile(stage), out, dots);
    decay_sum() += decay_of_rows(position, scale, dots);
  }
  // And from pairs within a chunk: a pair's weight times its distance, on the way to the same product.
  __device__ __forceinline__ void count_within_chunk(int stage, const float (&scale)[2], const float (&scores)[8][4]) {
    float moments[8][4], sums[8][4], dots[2];
    const float distance = static_cast<float>(anew(warp * 16 + g - 2 * t));  // else one is kept for each of the pairs
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        moments[n][i] = scores[n][i] * (distance + static_cast<float>(i / 2 * 8 - i % 2 - n * 8));
      }
    A weights[4];
    weigh(floats(L::kDistances), moments, weights);
    const std::uint64_t features = wgmma::descriptor(base + L::sliced(stage));
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) wgmma::multiply<true>(sums, weights[k], wgmma::step_along_rows(features, k), k > 0);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::settle(sums);
    dots_with_features(base + L::own_tile(stage), sums, dots);
    decay_sum() += dots[0] * scale[0] + dots[1] * scale[1];
  }
  __device__ __forceinline__ void write_decay_gradient() {
    const double sum = sum_over_warp(decay_sum());
    double* const sums = reinterpret_cast<double*>(shared + L::kDecaySums);
    sync_warpgroup();
    if (lane == 0) sums[warp] = sum;
    sync_warpgroup();
    if (threadIdx.x % 128 == 0) p.decay_gradient[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
  }

  // Rows of features: out = φ(x)·state + weights·[values, extra]. Rows of values: out = [x, error]·stateᵀ +
  // weights·features. Under way when this returns.
  template <int kTiles>
  __device__ __forceinline__ void products_of_rows(int stage, const RingTurn<2>& copy, int position,
                                                   const float (&error)[2], const float (&scale)[2],
                                                   float (&out)[kTiles][4]) {
    A x[2][4], cosine[2][4], sine[2][4], weights[4];
    float scores[8][4];
    const float2* turns = pairs(L::kRowTurns, stage) + warp * 16 + g;
    const float2 turn0 = turns[0], turn1 = turns[8];
    const auto last_of = [&](float first, float second) {
      return L::kFeatureRows ? A{} : extra_operand(error[0] * first, error[1] * second);
    };
    load_rows(x[0], base + L::row_tile(stage, 0), L::kFeatureRows);
    load_rows(x[1], base + L::row_tile(stage, 1), L::kFeatureRows);
    if constexpr (L::kRuns) begin_scores(stage, x, L::kKeys ? ones_operand() : last_of(1.0F, 1.0F), scores);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      scale_rows(cosine[b], x[b], turn0.x, turn1.x);
      scale_rows(sine[b], x[b], turn0.y, turn1.y);
    }
    const A last[2] = {last_of(turn0.x, turn1.x), last_of(turn0.y, turn1.y)};
    if constexpr (L::kRuns) wait(L::published(copy.stage), copy.round);
    wgmma::fence();
    multiply_state(copy.stage, 0, cosine, last[0], out);
    multiply_state(copy.stage, 1, sine, last[1], out);
    wgmma::commit();
    if constexpr (L::kRuns) {
      wgmma::wait<1>();
      wgmma::settle(scores);
      if constexpr (L::kDecayGradient) {
        count_between_chunks(stage, position, scale, out);
        if constexpr (L::kQueries) count_within_chunk(stage, scale, scores);
      }
      weigh(floats(L::kDistances), scores, weights);
      const int tile = L::sliced(stage);
      const std::uint64_t columns =
          wgmma::descriptor(base + tile, L::kFeatureRows ? L::kBlocks + L::block_piece(stage) * 16 - tile : 16);
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(columns, k), true);
      wgmma::commit();
    }
  }

  // The forward's row sums, in as few instructions as can be: rows are what a sweep waits for.
  __device__ __forceinline__ void keep_sums(int position, const float (&sums)[2], float (&scale)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = position + 8 * i;
      if (keeps_sums && has(token + warp * 16 + g, row_length)) {
        denominators[static_cast<std::int64_t>(token) * static_cast<int>(p.denominator_time_stride)] = sums[i];
      }
      scale[i] = p.normalised ? __fdividef(1.0F, fmaxf(sums[i], p.eps)) : 1.0F;
    }
  }

  // The products have ended: the columns may have the state's copy back, results leave.
  template <int kTiles>
  __device__ __forceinline__ void finish(int stage, int copy, int position, float (&scale)[2],
                                         float (&out)[kTiles][4]) {
    wgmma::wait<0>();
    wgmma::settle(out);
    if constexpr (L::kRuns) arrive(L::returned(copy));
    if constexpr (L::kForward) {
      const float sums[2] = {__shfl_sync(0xffffffffU, out[8][0] + out[8][1], g * 4),
                             __shfl_sync(0xffffffffU, out[8][2] + out[8][3], g * 4)};
      if constexpr (L::kTwoSided) {
        forward_scale<true>(position, sums, floats(L::kRowFactors), scale);
      } else {
        keep_sums(position, sums, scale);
      }
    }
    const Target to = target_of(L::kValues ? w.second : w.first, L::kRowsAreQueries ? q_begin : k_begin, position);
    write_rows<kTiles, L::kForward, L::kRowsAreQueries, L::kTwoSided>(
        base + L::row_tile(stage, 0), L::kHasOwn ? base + L::own_tile(stage) : 0U, base + L::earlier_tile(stage), to,
        floats(L::kRowFactors), scale, out);
    arrive(L::free(stage));
  }

  __device__ __forceinline__ void run() {
    locate<true, L::kRowsAreQueries>();
    const auto [begin, end, last_segment] = span();
    keeps_sums = p.normalised && t == 0 && slice == 0;
    denominators = L::kForward && keeps_sums ? p.denominator + denominator_at(warp * 16 + g) : nullptr;
    if constexpr (L::kDecayGradient) decay_sum() = 0.0;
    if constexpr (L::kRuns) {
      take_angles();
      build_distances(floats(L::kDistances));
    } else {
      publish_sum();
      wgmma::publish_shared();
    }
    sync_warpgroup();
    RingTurn<L::kStages> at;
    RingTurn<2> copy;
    for (int position = begin; position < end; position += kChunk) {
      wait(L::full(at.stage), at.round);
      float error[2] = {1.0F, 1.0F}, scale[2] = {1.0F, 1.0F};
      if constexpr (L::kQueries) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 numbers = pairs(L::kRowErrors, at.stage)[warp * 16 + g + 8 * i];
          error[i] = numbers.x;
          scale[i] = numbers.y;
        }
      }
      float out[L::kForward ? 9 : 8][4];
      products_of_rows(at.stage, copy, position, error, scale, out);
      finish(at.stage, copy.stage, position, scale, out);
      at.advance();
      if constexpr (L::kRuns) copy.advance();
    }
    if constexpr (L::kDecayGradient) write_decay_gradient();
  }
};

}  // namespace cosformer::kernels::cuda
