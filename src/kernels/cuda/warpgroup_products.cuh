// The warpgroup sweep's products.
#pragma once

#include "kernels/cuda/warpgroup_load.cuh"

namespace cosformer::kernels::cuda {

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::load_rows(A (&x)[4],
                                                                                                  std::uint32_t tile,
                                                                                                  bool relu) {
  const std::uint32_t row = tile + (warp * 16 + (lane & 15)) * 128;
  const std::uint32_t swizzle = ((lane >> 4) ^ (lane & 7)) * 16;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    E::load4(x[k].r, row + (swizzle ^ (k * 32)));
    if (relu) {
#pragma unroll
      for (int i = 0; i < 4; ++i) x[k].r[i] = relu_pair(x[k].r[i]);
    }
  }
}

// Scores times the table, as operands of the product with the columns.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::weigh(float (&scores)[8][4],
                                                                                              A (&weights)[4]) {
  const float* distances =
      floats(kDistances) + (g % 2 == 0 ? 0 : kSecondDistances - 1) + kChunk - warp * 16 - g + 2 * t;
  float2 weight = load_pair(distances - 8);
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 before = weight;
    weight = load_pair(distances + n * 8);
    weights[n / 2].r[n % 2 * 2] = pack_bf16(scores[n][0] * weight.x, scores[n][1] * weight.y);
    weights[n / 2].r[n % 2 * 2 + 1] = pack_bf16(scores[n][2] * before.x, scores[n][3] * before.y);
  }
}

// The chunk's own sum: features along the rows of the accumulators.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::update(int stage,
                                                                                               int position) {
  if (p.log_decay != nullptr) {
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int n = 0; n < 9; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) state[part][n][i] *= chunk_decay;
  }
  A parts[2][4];
  // Depth slots 2t, 2t + 1 and 2t + 8, 2t + 9 of step k: words 2k and 2k + 1 of the lane's weights.
  const std::uint32_t weights = shared_address(array(kWeights + weight_set(position))) + t * 32;
  const std::uint32_t row = feature_tile(stage) + ((lane & 7) + (lane >> 4) * 8) * 128;
  const std::uint32_t swizzle = ((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) * 16;
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    A raw[2];
    E::load4_transposed(raw[0].r, row + swizzle + k * 2048);
    E::load4_transposed(raw[1].r, row + swizzle + (k + 1) * 2048);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const uint4 words = load_shared_16(weights + part * 128 + k * 8);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const std::uint32_t low = j == 0 ? words.x : words.z, high = j == 0 ? words.y : words.w;
        A& a = parts[part][k + j];
        a = {{multiply_pair(raw[j].r[0], low), multiply_pair(raw[j].r[1], low), multiply_pair(raw[j].r[2], high),
              multiply_pair(raw[j].r[3], high)}};
      }
    }
  }
  const std::uint64_t values = wgmma::descriptor(value_tile(stage), base + kBlock - value_tile(stage));
  wgmma::fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<true>(state[0], parts[0][k], wgmma::step_along_rows(values, k), true);
    wgmma::multiply<true>(state[1], parts[1][k], wgmma::step_along_rows(values, k), true);
  }
  wgmma::commit();
}

// x scaled by a number for each of the lane's two rows.
__device__ __forceinline__ void scale_rows(WarpgroupEngine::A (&to)[4], const WarpgroupEngine::A (&x)[4], float first,
                                           float second) {
  const std::uint32_t a = twice_bf16(first), b = twice_bf16(second);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    to[k] = {{multiply_pair(x[k].r[0], a), multiply_pair(x[k].r[1], b), multiply_pair(x[k].r[2], a),
              multiply_pair(x[k].r[3], b)}};
  }
}

// The decay's gradient from pairs of different chunks: rows of φ(own) times what the state gave them.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::count_between_chunks(
    std::uint32_t own, int position, const float (&scale)[2], const float (&out)[8][4]) {
  float dot[2] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = warp * 16 + g + 8 * i;
    const unsigned char* from = shared + (own - base) + row * 128 + 4 * t;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const std::uint32_t x = relu_pair(*reinterpret_cast<const std::uint32_t*>(from + ((n ^ g) * 16)));
      dot[i] += low_of(x) * out[n][2 * i] + high_of(x) * out[n][2 * i + 1];
    }
    const int token = token_at(position + row);
    if (has(token, row_length)) decay_sum += static_cast<double>(dot[i] * scale[i]) * (reversed ? -token : token);
  }
}

// And from pairs within the chunk: distance times score times the other product's weighted score.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::count_within_chunk(
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
  decay_sum += sum;
}

// Rows of features against the state and the chunk: out = φ(x)·state + weights·[values, extra].
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::value_rows_product(
    int stage, std::uint32_t x_tile, const A (&other)[4], float (&out)[kTiles][4]) {
  A x[4], cosine[4], sine[4], weights[4];
  float scores[8][4];
  const float2* turns = reinterpret_cast<const float2*>(array(kRowTurns)) + warp * 16 + g;
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
  const std::uint64_t state_cosine = wgmma::descriptor(state_tile(0), kTile);
  const std::uint64_t state_sine = wgmma::descriptor(state_tile(1), kTile);
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
    weigh(scores, weights);
    const std::uint64_t values = wgmma::descriptor(value_tile(stage), base + kBlock - value_tile(stage));
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) wgmma::multiply<true>(out, weights[k], wgmma::step_along_rows(values, k), true);
    wgmma::commit();
  }
}

// Rows of values against the transposed state: out = [x, error]·stateᵀ + weights·features.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::feature_rows_product(
    int stage, std::uint32_t x_tile, std::uint32_t own, int position, const float (&error)[2], const float (&scale)[2],
    A (&weights)[4], float (&out)[8][4]) {
  A x[4], cosine[4], sine[4];
  float scores[8][4];
  const float2* turns = reinterpret_cast<const float2*>(array(kRowTurns)) + warp * 16 + g;
  const float2 turn0 = turns[0], turn1 = turns[8];
  // Columns 0, 1: the head of the row's factor, 2, 3: its rest, against head and rest of the extra block.
  const auto extra = [&](float first, float second) {
    const std::uint32_t a = head_and_rest(first), b = head_and_rest(second);
    const std::uint32_t pick = t == 0 ? 0x1010U : 0x3232U;
    const bool has_columns = t < 2;
    return A{{has_columns ? __byte_perm(a, 0U, pick) : 0U, has_columns ? __byte_perm(b, 0U, pick) : 0U, 0U, 0U}};
  };
  load_rows(x, x_tile, false);
  if constexpr (kIntra) {
    const std::uint64_t values = wgmma::descriptor(value_tile(stage)), block = wgmma::descriptor(base + kBlock);
    A last = extra(error[0], error[1]);
    if constexpr (kKeys) {
      const std::uint32_t ones = t == 0 && half == 0 ? 0x3f803f80U : 0U;
      last = {{ones, ones, 0U, 0U}};
    }
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
  const A last_cosine = extra(error[0] * turn0.x, error[1] * turn1.x);
  const A last_sine = extra(error[0] * turn0.y, error[1] * turn1.y);
  const std::uint64_t state_cosine = wgmma::descriptor(state_tile(0));
  const std::uint64_t state_sine = wgmma::descriptor(state_tile(1));
  wgmma::fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<false>(out, cosine[k], wgmma::step_along_columns(state_cosine, kChunk, k), k > 0);
  }
  wgmma::multiply<false>(out, last_cosine, wgmma::step_along_columns(state_cosine, kChunk, 4), true);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma::multiply<false>(out, sine[k], wgmma::step_along_columns(state_sine, kChunk, k), true);
  }
  wgmma::multiply<false>(out, last_sine, wgmma::step_along_columns(state_sine, kChunk, 4), true);
  wgmma::commit();
  if constexpr (kIntra) {
    wgmma::wait<1>();
    wgmma::settle(scores);
    weigh(scores, weights);
    const std::uint64_t features = wgmma::descriptor(feature_tile(stage));
    if constexpr (kDecayGradient) {  // what the state gives is needed by itself
      wgmma::fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply<true>(scores, weights[k], wgmma::step_along_rows(features, k), k > 0);
      }
      wgmma::commit();
      if constexpr (!kBoth) update(stage, position);
      wgmma::wait<kBoth ? 1 : 2>();
      wgmma::settle(out);
      count_between_chunks(own, position, scale, out);
      wgmma::wait<kBoth ? 0 : 1>();
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
