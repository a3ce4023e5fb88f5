// The warpgroup that multiplies a wide head's rows.
#pragma once

#include "kernels/cuda/wide_layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct WideRows : WideWarpgroup {
  using WideWarpgroup::WideWarpgroup;

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

  // Rows of features: out = φ(x)·state + weights·[values, extra].
  template <int kTiles>
  __device__ __forceinline__ void values_of_rows(int stage, const WideTurn<2>& copy, float (&out)[kTiles][4]) {
    A x[2][4], cosine[2][4], sine[2][4], weights[4];
    float scores[8][4];
    const float2* turns = pairs(L::kRowTurns, stage) + warp * 16 + g;
    const float2 turn0 = turns[0], turn1 = turns[8];
    load_rows(x[0], base + L::row_tile(stage, 0), true);
    load_rows(x[1], base + L::row_tile(stage, 1), true);
    if constexpr (L::kIntra) {
      wgmma::fence();
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const std::uint64_t features = wgmma::descriptor(base + L::contracted(stage, b));
#pragma unroll
        for (int k = 0; k < 4; ++k)
          wgmma::multiply<false>(scores, x[b][k], wgmma::step_along_columns(features, kChunk, k), b + k > 0);
      }
      wgmma::commit();
    }
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      scale_rows(cosine[b], x[b], turn0.x, turn1.x);
      scale_rows(sine[b], x[b], turn0.y, turn1.y);
    }
    if constexpr (L::kIntra) wait(L::published(copy.stage), copy.round);
    wgmma::fence();
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const int tile = L::state_tile(copy.stage, part, b);
        const std::uint64_t state =
            wgmma::descriptor(base + tile, L::kStateExtras + L::state_piece(copy.stage, part, b) * 16 - tile);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          wgmma::multiply<true>(out, part == 0 ? cosine[b][k] : sine[b][k], wgmma::step_along_rows(state, k),
                                part + b + k > 0);
        }
      }
    wgmma::commit();
    if constexpr (L::kIntra) {
      wgmma::wait<1>();
      wgmma::settle(scores);
      weigh(floats(L::kDistances), scores, weights);
      const int tile = L::sliced(stage);
      const std::uint64_t values = wgmma::descriptor(base + tile, L::kBlocks + L::block_piece(stage) * 16 - tile);
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(values, k), true);
      wgmma::commit();
    }
  }

  // Rows of values: out = [x, error]·stateᵀ + weights·features.
  __device__ __forceinline__ void features_of_rows(int stage, const WideTurn<2>& copy, const float (&error)[2],
                                                   float (&out)[8][4]) {
    A x[2][4], cosine[2][4], sine[2][4], weights[4];
    float scores[8][4];
    const float2* turns = pairs(L::kRowTurns, stage) + warp * 16 + g;
    const float2 turn0 = turns[0], turn1 = turns[8];
    load_rows(x[0], base + L::row_tile(stage, 0), false);
    load_rows(x[1], base + L::row_tile(stage, 1), false);
    const A last = L::kKeys ? ones_operand() : extra_operand(error[0], error[1]);
    if constexpr (L::kIntra) {
      wgmma::fence();
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const std::uint64_t values = wgmma::descriptor(base + L::contracted(stage, b));
#pragma unroll
        for (int k = 0; k < 4; ++k)
          wgmma::multiply<false>(scores, x[b][k], wgmma::step_along_columns(values, kChunk, k), b + k > 0);
      }
      wgmma::multiply<false>(scores, last, wgmma::descriptor(base + L::kBlocks + L::block_piece(stage) * 16), true);
      wgmma::commit();
    }
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      scale_rows(cosine[b], x[b], turn0.x, turn1.x);
      scale_rows(sine[b], x[b], turn0.y, turn1.y);
    }
    const A last_of[2] = {extra_operand(error[0] * turn0.x, error[1] * turn1.x),
                          extra_operand(error[0] * turn0.y, error[1] * turn1.y)};
    if constexpr (L::kIntra) wait(L::published(copy.stage), copy.round);
    wgmma::fence();
#pragma unroll
    for (int part = 0; part < 2; ++part) {
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const std::uint64_t state = wgmma::descriptor(base + L::state_tile(copy.stage, part, b));
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          wgmma::multiply<false>(out, part == 0 ? cosine[b][k] : sine[b][k],
                                 wgmma::step_along_columns(state, kChunk, k), part + b + k > 0);
        }
      }
      const std::uint64_t extra = wgmma::descriptor(base + L::kStateExtras + L::state_piece(copy.stage, part, 1) * 16);
      wgmma::multiply<false>(out, last_of[part], extra, true);
    }
    wgmma::commit();
    if constexpr (L::kIntra) {
      wgmma::wait<1>();
      wgmma::settle(scores);
      weigh(floats(L::kDistances), scores, weights);
      const std::uint64_t features = wgmma::descriptor(base + L::sliced(stage));
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(features, k), true);
      wgmma::commit();
    }
  }

  // The products have ended: the columns may have the state's copy back, results leave.
  template <int kTiles>
  __device__ __forceinline__ void finish(int stage, int copy, int position, float (&scale)[2],
                                         float (&out)[kTiles][4]) {
    wgmma::wait<0>();
    wgmma::settle(out);
    if constexpr (L::kIntra) arrive(L::returned(copy));
    if constexpr (L::kForward) {
      const float sums[2] = {__shfl_sync(0xffffffffU, out[8][0] + out[8][1], g * 4),
                             __shfl_sync(0xffffffffU, out[8][2] + out[8][3], g * 4)};
      forward_scale<L::kTwoSided>(position, sums, floats(L::kRowFactors), scale);
    }
    const Target to = target_of(L::kValues ? w.second : w.first, L::kRowsAreQueries ? q_begin : k_begin, position);
    write_rows<kTiles, L::kForward, L::kRowsAreQueries, L::kTwoSided>(
        base + L::row_tile(stage, 0), L::kHasOwn ? base + L::own_tile(stage) : 0U, base + L::earlier_tile(stage), to,
        floats(L::kRowFactors), scale, out);
  }

  __device__ __forceinline__ void run() {
    locate<true, L::kRowsAreQueries>();
    const auto [begin, end, last_segment] = span();
    if constexpr (L::kIntra) {
      take_angles();
      build_distances(floats(L::kDistances));
    }
    if constexpr (!L::kUpdate) {
      publish_sum();
      wgmma::publish_shared();
    }
    meet();
    WideTurn<L::kStages> at;
    WideTurn<2> copy;
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
      if constexpr (L::kFeatureRows) {
        float out[L::kForward ? 9 : 8][4];
        values_of_rows(at.stage, copy, out);
        finish(at.stage, copy.stage, position, scale, out);
      } else {
        float out[8][4];
        features_of_rows(at.stage, copy, error, out);
        finish(at.stage, copy.stage, position, scale, out);
      }
      arrive(L::free(at.stage));
      at.advance();
      if constexpr (L::kIntra) copy.advance();
    }
  }
};

}  // namespace cosformer::kernels::cuda
