// The warpgroup sweep's products, its output, its loop and its launch.
#pragma once

#include "kernels/cuda/warpgroup_load.cuh"

namespace cosformer::kernels::cuda {

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::load_rows(A (&x)[4], std::uint32_t tile, bool relu) {
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::weigh(float (&scores)[8][4], A (&weights)[4]) {
  const float* distances =
      floats(kDistances) + (g % 2 == 0 ? 0 : kDistanceSize - 1) + kChunk - warp * 16 - g + 2 * t;
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::update(int stage) {
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
  const std::uint32_t weights = shared_address(array(kWeights)) + t * 32;
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::count_between_chunks(
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::count_within_chunk(
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::value_rows_product(int stage, std::uint32_t x_tile,
                                                                                  const A (&other)[4],
                                                                                  float (&out)[kTiles][4]) {
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::feature_rows_product(int stage, std::uint32_t x_tile,
                                                                                    std::uint32_t own, int position,
                                                                                    const float (&error)[2],
                                                                                    const float (&scale)[2],
                                                                                    A (&weights)[4],
                                                                                    float (&out)[8][4]) {
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
      if constexpr (!kBoth) update(stage);
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

// a + factor·b for eight numbers.
__device__ __forceinline__ uint4 add_scaled(const uint4& a, const uint4& b, float factor) {
  const auto add = [&](std::uint32_t x, std::uint32_t y) {
    return pack_bf16(low_of(x) + factor * low_of(y), high_of(x) + factor * high_of(y));
  };
  return {add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

// The forward's row sums: written, and turned into what scales the rows. The first of two sides leaves its sums and
// divides by their size, so that the second can undo it.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::forward_scale(int position,
                                                                                             const float (&sums)[2],
                                                                                             float (&scale)[2]) {
  float first[2] = {};
  if (kTwoSided && p.pass == SweepPass::kSecondOfTwo && p.normalised) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = token_at(position + warp * 16 + g + 8 * i);
      if (has(token, row_length)) first[i] = p.row_scalar[row_scalar_at(token)];
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = warp * 16 + g + 8 * i;
    const int token = token_at(position + row);
    const bool writes = t == 0 && half == 0 && slice == 0 && has(token, row_length);
    float sum = sums[i], before = 1.0F;
    scale[i] = 1.0F;
    if (p.normalised) {
      if (kTwoSided && p.pass == SweepPass::kFirstOfTwo) {
        if (writes) p.row_scalar[row_scalar_at(token)] = sum;
        sum = fabsf(sum);
      } else {
        if (kTwoSided && p.pass == SweepPass::kSecondOfTwo) {
          before = fmaxf(fabsf(first[i]), p.eps);
          sum += first[i];
        }
        if (writes) p.denominator[denominator_at(token)] = sum;
      }
      scale[i] = __fdividef(1.0F, fmaxf(sum, p.eps));
    }
    if (kTwoSided && p.pass == SweepPass::kSecondOfTwo && t == 0) floats(kRowFactors)[row] = before * scale[i];
  }
}

// Results of this warp's rows, through its rows of `tile` for whole sectors; `own`: only where it is positive.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::write_rows(std::uint32_t tile, std::uint32_t own,
                                                                          const Destination& to, std::int64_t begin,
                                                                          int position, const float (&scale)[2],
                                                                          float (&out)[kTiles][4]) {
  int token = token_at(position + fetch_row);
  const int sign = reversed ? -4 : 4;
  const std::int64_t stride = static_cast<std::int64_t>(to.time_stride) * sign;
  Io* row = static_cast<Io*>(to.data) + extent.batch * to.batch_stride + head * to.head_stride +
            (begin + token) * static_cast<std::int64_t>(to.time_stride) + piece * 8;
  const bool inside = piece * 8 < to.columns;
  const bool second = kTwoSided && p.pass == SweepPass::kSecondOfTwo;
  uint4 earlier[kTwoSided ? 4 : 1];
  if (second) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      earlier[kTwoSided ? i : 0] = {0U, 0U, 0U, 0U};
      if (inside && has(token + i * sign, row_length)) {
        earlier[kTwoSided ? i : 0] = *reinterpret_cast<const uint4*>(row + i * stride);
      }
    }
  }
  if constexpr (kRowsAreQueries) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] *= scale[i / 2];
  }
  __syncwarp();
#pragma unroll
  for (int n = 0; n < 8; n += 2) E::store_16x16(tile, kChunk, warp * 16, n * 8, lane, out[n], out[n + 1]);
  __syncwarp();
  uint4 pieces[4], owns[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) pieces[i] = load_shared_16(piece_at(tile, i));
  if (own != 0) {
#pragma unroll
    for (int i = 0; i < 4; ++i) owns[i] = load_shared_16(piece_at(own, i));
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint4& x = pieces[i];
    if (own != 0) {
      const uint4& y = owns[i];
      x = {where_positive(x.x, y.x), where_positive(x.y, y.y), where_positive(x.z, y.z), where_positive(x.w, y.w)};
    }
    if (second) {
      x = add_scaled(x, earlier[kTwoSided ? i : 0], kForward ? floats(kRowFactors)[fetch_row + 4 * i] : 1.0F);
    }
    if (inside && has(token, row_length)) *reinterpret_cast<uint4*>(row) = x;
    row += stride;
    token += sign;
  }
  __syncwarp();
}

// Halves: gives the other half of the columns away and adds what the other warpgroup has for one's own; sums of both.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::exchange(
    const float (&out)[kTiles][4], float (&mine)[4][4], float (&sums)[2]) {
  const int thread = warp * 32 + lane;
  const auto at = [&](int from) { return shared + kExchange + from * kExchangeBytes; };
  float4* give = reinterpret_cast<float4*>(at(half)) + thread;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    float other[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      other[i] = half == 0 ? out[4 + n][i] : out[n][i];
      mine[n][i] = half == 0 ? out[n][i] : out[4 + n][i];
    }
    give[n * 128] = make_float4(other[0], other[1], other[2], other[3]);
  }
  if constexpr (kForward) {
    reinterpret_cast<float2*>(at(half) + 4 * 128 * 16)[thread] = make_float2(sums[0], sums[1]);
  }
  __syncthreads();
  const float4* take = reinterpret_cast<const float4*>(at(half ^ 1)) + thread;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const float4 x = take[n * 128];
    mine[n][0] += x.x;
    mine[n][1] += x.y;
    mine[n][2] += x.z;
    mine[n][3] += x.w;
  }
  if constexpr (kForward) {
    const float2 x = reinterpret_cast<const float2*>(at(half ^ 1) + 4 * 128 * 16)[thread];
    sums[0] += x.x;
    sums[1] += x.y;
  }
}

// As write_rows, for the 32 columns of a half, through the first half of the rows of x.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::write_half(
    int stage, const Destination& to, std::int64_t begin, int position, const float (&scale)[2],
    float (&mine)[4][4]) {
  if constexpr (kRowsAreQueries) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) mine[n][i] *= scale[i / 2];
  }
  const std::uint32_t tile = x_tile(stage);
  __syncwarp();
#pragma unroll
  for (int n = 0; n < 4; n += 2) E::store_16x16(tile, kChunk, warp * 16, n * 8, lane, mine[n], mine[n + 1]);
  __syncwarp();
  const int column = slice * 64 + half * 32 + t * 8;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = warp * 16 + g + 8 * i;
    const int token = token_at(position + row);
    uint4 x = load_shared_16(tile + row * 128 + ((t ^ g) * 16));
    if constexpr (kHasOwn) {
      const uint4 y = load_shared_16(own_tile() + row * 128 + (((half * 4 + t) ^ g) * 16));
      x = {where_positive(x.x, y.x), where_positive(x.y, y.y), where_positive(x.z, y.z), where_positive(x.w, y.w)};
    }
    if (column < to.columns && has(token, row_length)) {
      uint4* const at = reinterpret_cast<uint4*>(static_cast<Io*>(to.data) + extent.batch * to.batch_stride +
                                                 head * to.head_stride +
                                                 (begin + token) * static_cast<std::int64_t>(to.time_stride) + column);
      if (kTwoSided && p.pass == SweepPass::kSecondOfTwo) x = add_scaled(x, *at, kForward ? floats(kRowFactors)[row] : 1.0F);
      *at = x;
    }
  }
  __syncwarp();
}

// e = −dout·out and 1/s of the lane's two rows; 0 where the denominator was clamped.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::query_errors(
    int stage, int position, float (&error)[2], float (&scale)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    error[i] = 0.0F;
    scale[i] = 1.0F;
    if (!p.normalised) continue;
    const int row = warp * 16 + g + 8 * i;
    const float s = floats(kRawDenominators)[stage * kChunk + row];
    float dot = floats(kRowDots)[row];
    if constexpr (kHalves == 2) {
      dot += reinterpret_cast<const float*>(shared + kArrays + (half ^ 1) * kArrayBytes + kRowDots)[row];
    }
    scale[i] = __fdividef(1.0F, fmaxf(s, p.eps));
    if (s >= p.eps) error[i] = -dot;
    const int token = token_at(position + row);
    if (t == 0 && half == 0 && slice == 0 && has(token, row_length)) {
      p.row_scalar[row_scalar_at(token)] = error[i] * scale[i];
    }
    if (half != 0) error[i] = 0.0F;  // the extra column is the first half's
  }
}

// From accumulators to memory.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::finish_rows(
    int stage, std::uint32_t tile, std::uint32_t own, const Destination& to, int position, float (&scale)[2],
    float (&out)[kTiles][4]) {
  const std::int64_t begin = kRowsAreQueries ? extent.q_begin : extent.k_begin;
  float sums[2] = {};
  if constexpr (kForward) {
    sums[0] = __shfl_sync(0xffffffffU, out[8][0] + out[8][1], g * 4);
    sums[1] = __shfl_sync(0xffffffffU, out[8][2] + out[8][3], g * 4);
  }
  if constexpr (kHalves == 2) {
    float mine[4][4];
    exchange(out, mine, sums);
    if constexpr (kForward) forward_scale(position, sums, scale);
    write_half(stage, to, begin, position, scale, mine);
  } else {
    if constexpr (kForward) forward_scale(position, sums, scale);
    write_rows(tile, own, to, begin, position, scale, out);
  }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::compute(int stage, int position) {
  const std::uint32_t x = x_tile(stage);
  float error[2] = {1.0F, 1.0F}, scale[2] = {1.0F, 1.0F};
  A weights[4] = {};
  if constexpr (!kInter) {
    update(stage);
  } else if constexpr (kFeatureRows) {
    float out[kForward ? 9 : 8][4];
    value_rows_product(stage, x, weights, out);
    if constexpr (kUpdate) update(stage);
    wgmma::wait<kUpdate ? 1 : 0>();
    wgmma::settle(out);
    finish_rows(stage, x, 0U, kForward ? w.first : w.second, position, scale, out);
  } else {
    const std::uint32_t own = kBoth ? x + kTile : own_tile();
    {
      float out[8][4];
      if constexpr (kQueries) query_errors(stage, position, error, scale);
      if (kKeys && half != 0) error[0] = error[1] = 0.0F;
      if constexpr (kDecayGradient && kHasOwn) {
        wait_copies<1>();
        __syncwarp();
      }
      feature_rows_product(stage, x, own, position, error, scale, weights, out);
      if constexpr (kUpdate && !kBoth && !kDecayGradient) update(stage);
      wgmma::wait<kUpdate && !kBoth ? 1 : 0>();
      wgmma::settle(out);
      if constexpr (kHasOwn) {
        wait_copies<1>();
        __syncwarp();
      }
      finish_rows(stage, x, own, w.first, position, scale, out);
    }
    if constexpr (kBoth) {
      float out[8][4];
      value_rows_product(stage, x + kTile, weights, out);
      if constexpr (kUpdate) update(stage);
      wgmma::wait<kUpdate ? 1 : 0>();
      wgmma::settle(out);
      finish_rows(stage, x + kTile, 0U, w.second, position, scale, out);
    }
  }
  if constexpr (kUpdate) {
    wgmma::wait<0>();
    wgmma::settle(state[0]);
    wgmma::settle(state[1]);
  }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra>::run() {
  locate();
  if (!kInter && p.frame == Frame::kBoth && segment + 1 == p.segments) return;  // nothing starts after the last one
  const int segment_begin = segment * p.segment_tokens;
  int position = max(segment_begin, lead / kChunk * kChunk);
  int end = min(segment_begin + p.segment_tokens, padded);
  if (!reversed) end = min(end, (frame_length + kChunk - 1) / kChunk * kChunk);
  const bool last_segment =
      segment_begin < padded ? segment_begin + p.segment_tokens >= padded : segment == 0 && padded == 0;

  start_rows(position);
  if (position < end) {
    fetch(0, position);
    fetch_own(position);
  }
  load_state();
  if constexpr (kIntra) build_distances();
  clear_blocks();
  if constexpr (kInter) publish_state();
  if constexpr (!kUpdate) {  // warps go their own ways from here on, but for the halves' exchanges
    wgmma::publish_shared();
    __syncthreads();
  }
  int first = -1, last = -1, stage = 0;
  bool first_chunk = true;
  for (; position < end; position += kChunk) {
    if constexpr (kUpdate) {
      const int chunk_first = max(lead - position, 0);
      const int chunk_last = reversed ? kChunk : min(kChunk, frame_length - position);
      if (chunk_first != first || chunk_last != last) {
        first = chunk_first;
        last = chunk_last;
        set_powers(first, last);
      }
    }
    set_turns(position, first_chunk);
    first_chunk = false;
    wait_copies<kHasOwn ? 1 : 0>();
    prepare(stage, position);
    if constexpr (kUpdate) wgmma::publish_shared();
    if constexpr (kUpdate || kHalves == 2) __syncthreads();
    const bool more = position + kChunk < end;
    if (more) {
      fetch(stage ^ 1, position + kChunk);
    } else {
      commit_copies();
    }
    compute(stage, position);
    if (kHasOwn) {
      if (more) {
        fetch_own(position + kChunk);
      } else {
        commit_copies();
      }
    }
    if constexpr (kUpdate || kHalves == 2) __syncthreads();
    if constexpr (kIntra) publish_state();
    stage ^= 1;
  }
  if (p.store == StoreState::kOfSegment) store_state(segment);
  if (p.store == StoreState::kFinal && last_segment) store_state(p.total_slot);
  if constexpr (kDecayGradient) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) decay_sum += __shfl_xor_sync(0xffffffffU, decay_sum, offset);
    double* sums = reinterpret_cast<double*>(array(kRowTurns));
    __syncthreads();
    if (lane == 0) sums[warp] = decay_sum;
    __syncthreads();
    if (threadIdx.x == 0 && p.decay_gradient != nullptr) p.decay_gradient[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
  }
}

template <class Sweep>
__global__ void __launch_bounds__(Sweep::kThreads, Sweep::kMinBlocks)
    warpgroup_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  Sweep(params, shared).run();
#endif
}

template <class Sweep>
cudaError_t launch_warpgroup_kernel(const WarpgroupParams& params, cudaStream_t stream) {
  const auto kernel = warpgroup_kernel<Sweep>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Sweep::kSharedBytes);
  if (status != cudaSuccess) return status;
  const SweepParams& p = params.sweep;
  const std::int64_t blocks = p.sequences * p.segments * p.heads * p.slices;
  if (blocks <= 0 || blocks > 0x7fffffffLL) return blocks == 0 ? cudaSuccess : cudaErrorInvalidValue;
  kernel<<<static_cast<unsigned>(blocks), Sweep::kThreads, Sweep::kSharedBytes, stream>>>(params);
  return cudaGetLastError();
}

template <WarpgroupPass kPass, int kHalves>
cudaError_t launch_warpgroup_mode(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  constexpr bool kSums = kPass == WarpgroupPass::kForward ||
                         kPass == (kHalves == 1 ? WarpgroupPass::kKeys : WarpgroupPass::kValues);
  const auto launch = [&]<Mode kMode, WarpgroupExtra kExtra>() {
    return launch_warpgroup_kernel<WarpgroupSweep<kPass, kMode, kHalves, kExtra>>(params, stream);
  };
  const SweepParams& p = params.sweep;
  switch (mode) {
    case Mode::kRun:
      if constexpr (kHalves == 1 || kPass == WarpgroupPass::kForward) {
        if (p.pass != SweepPass::kOnly) return launch.template operator()<Mode::kRun, WarpgroupExtra::kTwoSided>();
      }
      if constexpr (kHalves == 1 && kPass != WarpgroupPass::kForward) {
        if (p.decay_gradient != nullptr) {
          return launch.template operator()<Mode::kRun, WarpgroupExtra::kDecayGradient>();
        }
      }
      if (p.pass != SweepPass::kOnly || p.decay_gradient != nullptr) return cudaErrorInvalidValue;
      return launch.template operator()<Mode::kRun, WarpgroupExtra::kNothing>();
    case Mode::kApply: return launch.template operator()<Mode::kApply, WarpgroupExtra::kNothing>();
    case Mode::kSum:
      if constexpr (kSums) return launch.template operator()<Mode::kSum, WarpgroupExtra::kNothing>();
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
