// The warpgroup sweep's products.
#pragma once

#include "kernels/cuda/hopper/narrow/load.cuh"

namespace cosformer::kernels::cuda {

// The chunk's own sum: features along the rows of the accumulators.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::update(int stage, int position) {
  const float factor = kDecays == Decays::kGrow ? state_factor : chunk_decay;
  if (kDecays != Decays::kShrink && factor != 1.0F) {
    scale_block(state[0], factor);
    scale_block(state[1], factor);
  }
  A parts[2][4];
  weighed_features(parts, feature_tile(stage), weights_at(position));
  add_to_state(stage, parts);
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::add_to_state(int stage,
                                                                                         const A (&parts)[2][4]) {
  const std::uint64_t values = wgmma::descriptor(value_tile(stage), column_extra(stage) - value_tile(stage));
  wgmma::fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<true>(state[0], parts[0][k], wgmma::step_along_rows(values, k), true);
    wgmma::multiply<true>(state[1], parts[1][k], wgmma::step_along_rows(values, k), true);
  }
  wgmma::commit();
}

// The decay's gradient from pairs of different chunks: rows of φ(own) times what the state gave them.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::count_between_chunks(
    std::uint32_t own, int position, const float (&scale)[2], const float (&out)[8][4]) {
  float dots[2];
  dots_with_features(own, out, dots);
  decay_sum() += decay_of_rows(position, scale, dots);
}

// And from pairs within the chunk: distance times score times the other product's weighted score.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::count_within_chunk(
    const float (&scores)[8][4], const A (&other)[4]) {
  float sum = 0.0F;
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t pair = other[n / 2].r[n % 2 * 2 + i];
      const float distance = static_cast<float>(warp * 16 + g + 8 * i - (n * 8 + 2 * t));
      sum += distance * scores[n][2 * i] * low_of(pair);
      sum += (distance - 1.0F) * scores[n][2 * i + 1] * high_of(pair);
    }
  decay_sum() += sum;
}

// Rows of features against the state and the chunk: out = φ(x)·state + weights·[values, extra].
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
template <int kTiles>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::value_rows_product(
    int stage, std::uint32_t x_tile, const A (&other)[4], float (&out)[kTiles][4]) {
  A x[4], cosine[4], sine[4], weights[4];
  float scores[8][4];
  const float2* turns = row_turns() + warp * 16 + g;
  const float2 turn0 = turns[0], turn1 = turns[8];
  load_rows(x, x_tile, true);
  if constexpr (kIntra) {
    const std::uint64_t features = wgmma::descriptor(feature_tile(stage));
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma::multiply<false>(scores, x[k], wgmma::step_along_columns(features, kChunk, k), k > 0);
    }
    wgmma::commit();
  }
  scale_rows(cosine, x, turn0.x, turn1.x);
  scale_rows(sine, x, turn0.y, turn1.y);
  const std::uint64_t state_cosine = wgmma::descriptor(state_tile(0), state_extra(0) - state_tile(0));
  const std::uint64_t state_sine = wgmma::descriptor(state_tile(1), state_extra(1) - state_tile(1));
  wgmma::fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<true>(out, cosine[k], wgmma::step_along_rows(state_cosine, k), k > 0);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, sine[k], wgmma::step_along_rows(state_sine, k), true);
  wgmma::commit();
  if constexpr (kIntra) {
    wgmma::wait<1>();
    wgmma::settle(scores);
    if constexpr (kDecayGradient && kKeys) count_within_chunk(scores, other);
    weigh(floats(kDistances), scores, weights);
    const std::uint64_t values = wgmma::descriptor(value_tile(stage), base + kExtras - value_tile(stage));
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(values, k), true);
    wgmma::commit();
  }
}

// Rows of values against the transposed state: out = [x, error]·stateᵀ + weights·features.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::feature_rows_product(
    int stage, std::uint32_t x_tile, std::uint32_t own, int position, const float (&error)[2], const float (&scale)[2],
    A (&weights)[4], float (&out)[8][4]) {
  A x[4], cosine[4], sine[4];
  float scores[8][4];
  const float2* turns = row_turns() + warp * 16 + g;
  const float2 turn0 = turns[0], turn1 = turns[8];
  load_rows(x, x_tile, false);
  if constexpr (kIntra) {
    const std::uint64_t values = wgmma::descriptor(value_tile(stage)), block = wgmma::descriptor(base + kExtras);
    const A last = kKeys ? ones_operand() : extra_operand(error[0], error[1]);
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma::multiply<false>(scores, x[k], wgmma::step_along_columns(values, kChunk, k), k > 0);
    }
    wgmma::multiply<false>(scores, last, block, true);
    wgmma::commit();
  }
  scale_rows(cosine, x, turn0.x, turn1.x);
  scale_rows(sine, x, turn0.y, turn1.y);
  const A last_cosine = extra_operand(error[0] * turn0.x, error[1] * turn1.x);
  const A last_sine = extra_operand(error[0] * turn0.y, error[1] * turn1.y);
  const std::uint64_t state_cosine = wgmma::descriptor(state_tile(0));
  const std::uint64_t state_sine = wgmma::descriptor(state_tile(1));
  wgmma::fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<false>(out, cosine[k], wgmma::step_along_columns(state_cosine, kChunk, k), k > 0);
  }
  wgmma::multiply<false>(out, last_cosine, wgmma::descriptor(state_extra(0)), true);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<false>(out, sine[k], wgmma::step_along_columns(state_sine, kChunk, k), true);
  }
  wgmma::multiply<false>(out, last_sine, wgmma::descriptor(state_extra(1)), true);
  wgmma::commit();
  if constexpr (kIntra) {
    wgmma::wait<1>();
    wgmma::settle(scores);
    weigh(floats(kDistances), scores, weights);
    const std::uint64_t features = wgmma::descriptor(feature_tile(stage));
    if constexpr (kDecayGradient) {  // what the state gives is needed by itself
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<true>(scores, weights[k], wgmma::step_along_rows(features, k), k > 0);
      }
      wgmma::commit();
      if constexpr (!kKeys) update(stage, position);
      wgmma::wait<kKeys ? 1 : 2>();
      wgmma::settle(out);
      if constexpr (kHasOwn) await_own();
      count_between_chunks(own, position, scale, out);
      wgmma::wait<kKeys ? 0 : 1>();
      wgmma::settle(scores);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) out[n][i] += scores[n][i];
    } else {
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(features, k), true);
      wgmma::commit();
    }
  }
}

}  // namespace cosformer::kernels::cuda
