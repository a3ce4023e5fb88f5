// The sweep's products on one chunk through Hopper's asynchronous matrix unit, in the order that keeps it busy: scores,
// rows against the state, and while those run the weights of the scores and the operands of the chunk's own sum.
#pragma once

#include "kernels/cuda/sweep_products.cuh"

namespace cosformer::kernels::cuda {

// The rank-one terms of the extra feature, sine part times tan θ.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::add_extra_features(const float (&tangent)[2],
                                                                  float (&out)[C::kOutTiles + 1][4]) {
  const float* extra = arrays + C::kExtraState + 2 * t;
  float error[2] = {1.0F, 1.0F};
  if constexpr (kRole == Role::kQueryGradient) {
    error[0] = array(C::kRowError)[row_warp * 16 + g];
    error[1] = array(C::kRowError)[row_warp * 16 + g + 8];
  }
#pragma unroll
  for (int n = 0; n < C::kOutTiles; ++n) {
    const float2 cosine = load_pair(extra + n * 8), sine = load_pair(extra + C::kExtraLength + n * 8);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      out[n][2 * i] += error[i] * (cosine.x + tangent[i] * sine.x);
      out[n][2 * i + 1] += error[i] * (cosine.y + tangent[i] * sine.y);
    }
  }
}

template <class Config>
__device__ __forceinline__ void Sweep<Config>::compute_warpgroup(int stage, int position, double& decay_sum) {
  constexpr int kSteps = C::kFeatures / 16, kTokenSteps = kChunk / 16;
  const Tile x_tile = Engine::tile_at(tile(stage, C::kX)), y_tile = Engine::tile_at(tile(stage, C::kY));
  const std::uint64_t x_operand = wgmma::descriptor(x_tile), y_operand = wgmma::descriptor(y_tile);
  const std::uint64_t z_operand = wgmma::descriptor(Engine::tile_at(tile(stage, C::kZ)));
  const std::uint64_t cosine_state = wgmma::descriptor(Engine::tile_at(state_tile));
  const std::uint64_t sine_state = wgmma::descriptor(Engine::tile_at(state_tile + C::kStatePart));
  const int first_row = row_warp * 16;
  A x[C::kKeptSteps];
  float out[C::kOutTiles + 1][4], side[C::kKeepX ? C::kOutTiles : 1][4], scores[C::kIntra ? kChunk / 8 : 1][4];
  typename Engine::Weights weights[kTokenSteps];

  if constexpr (C::kInter && C::kKeepX) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) x[k] = Engine::load_a(x_tile, C::kFeaturePitch, first_row, k * 16, lane);
    if (maps_in_registers()) {
#pragma unroll
      for (int k = 0; k < kSteps; ++k) x[k] = Engine::relu(x[k]);
    }
  }
  // `to` = or += x · operand, from fragments or from the tile.
  const auto multiply_x = [&]<bool kRows>(auto& to, std::uint64_t operand, bool add) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const std::uint64_t step =
          kRows ? wgmma::step_along_rows(operand, k) : wgmma::step_along_columns(operand, kChunk, k);
      if constexpr (C::kKeepX) {
        wgmma::multiply<kRows>(to, x[k], step, add || k > 0);
      } else {
        wgmma::multiply<kRows>(to, wgmma::step_along_columns(x_operand, kChunk, k), step, add || k > 0);
      }
    }
    wgmma::commit();
  };

  wgmma::fence();
  if constexpr (C::kIntra) multiply_x.template operator()<false>(scores, y_operand, false);
  if constexpr (C::kInter) {
    if constexpr (C::kKeepX) {
      multiply_x.template operator()<true>(side, sine_state, false);
      multiply_x.template operator()<true>(out, cosine_state, false);
    } else {
      multiply_x.template operator()<true>(out, sine_state, false);
    }
  }
  float sums[4] = {};  // forward: rows against the features' sums, cosine and sine part, each in two parts
  if constexpr (kRole == Role::kForward && C::kInter) {
    const float* vector = arrays + C::kExtraState;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const A a = C::kKeepX ? x[C::kKeepX ? k : 0] : Engine::load_a(x_tile, C::kFeaturePitch, first_row, k * 16, lane);
      Engine::multiply(sums, a, Engine::columns_b(vector, vector + C::kExtraLength, k * 16, lane));
    }
  }
  if constexpr (C::kIntra) {
    wgmma::wait<C::kKeepX ? 2 : 1>();
    wgmma::settle(scores);
    weigh_scores(stage, scores, weights, decay_sum);
  }

  // The chunk's own sum, features along the rows of the accumulators.
  const auto update = [&](int m) {
    A cosine[kTokenSteps], sine[kTokenSteps];
#pragma unroll
    for (int k = 0; k < kTokenSteps; ++k) {
      const A raw = Engine::load_a_transposed(y_tile, C::kFeaturePitch, state_row(m), k * 16, lane);
      cosine[k] = Engine::scaled(raw, weight_array(0), k * 16, lane);
      sine[k] = Engine::scaled(raw, weight_array(1), k * 16, lane);
    }
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < kTokenSteps; ++k) {
      wgmma::multiply<true>(state[0][m], cosine[k], wgmma::step_along_rows(z_operand, k), true);
      wgmma::multiply<true>(state[1][m], sine[k], wgmma::step_along_rows(z_operand, k), true);
    }
    wgmma::commit();
  };
  const auto settle_state = [&] {
    wgmma::wait<0>();
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m) wgmma::settle(state[part][m]);
  };
  if constexpr (C::kUpdate) {
    if (p.log_decay != nullptr) {
      const float decay = arrays[C::kChunkDecay + set];
      for_each_state([&](int, int, int, float& value) { value *= decay; });
    }
    if constexpr (C::kStateTiles == 1 && C::kKeepX) update(0);
  }

  if constexpr (C::kInter) {
    const float* row_cosine = array(C::kRowCosine) + first_row + g;
    const float* row_tangent = array(C::kRowTangent) + first_row + g;
    const float cosine[2] = {row_cosine[0], row_cosine[8]}, tangent[2] = {row_tangent[0], row_tangent[8]};
    if constexpr (C::kKeepX) {
      wgmma::wait<C::kUpdate ? 1 : 0>();
      wgmma::settle(side);
      wgmma::settle(out);
#pragma unroll
      for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) out[n][i] += tangent[i / 2] * side[n][i];
      if constexpr (C::kExtraFeature) add_extra_features(tangent, out);
    } else {
      wgmma::wait<0>();
      wgmma::settle(out);
#pragma unroll
      for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) out[n][i] *= tangent[i / 2];
      wgmma::fence();
      multiply_x.template operator()<true>(out, cosine_state, true);
      wgmma::wait<0>();
      wgmma::settle(out);
      if constexpr (C::kExtraFeature) add_extra_features(tangent, out);
    }
#pragma unroll
    for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] *= cosine[i / 2];
    float denominator[4] = {};
    if constexpr (kRole == Role::kForward) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] += __shfl_down_sync(0xffffffffU, sums[i], 1);
      denominator[0] = cosine[0] * (sums[0] + tangent[0] * sums[1]);
      denominator[2] = cosine[1] * (sums[2] + tangent[1] * sums[3]);
    }
    count_decay(stage, position, out, decay_sum);
    if constexpr (C::kIntra) {
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < kTokenSteps; ++k) {
        wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(z_operand, k), true);
      }
      wgmma::commit();
      if constexpr (kRole == Role::kForward) {
        float intra[4] = {};
#pragma unroll
        for (int k = 0; k < kTokenSteps; ++k) Engine::multiply(intra, weights[k], Engine::ones_b(lane));
        denominator[0] += intra[0];
        denominator[2] += intra[2];
      }
      wgmma::wait<0>();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) out[C::kOutTiles][i] = denominator[i];
  }
  if constexpr (C::kUpdate) {
    if constexpr (!C::kKeepX) {
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m) update(m);
    }
  }
  if constexpr (C::kInter) {
    if constexpr (C::kIntra) wgmma::settle(out);
    write_rows(stage, position, out);
  }
  if constexpr (C::kUpdate) settle_state();
}

}  // namespace cosformer::kernels::cuda
