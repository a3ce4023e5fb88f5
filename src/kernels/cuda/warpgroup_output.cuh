// The warpgroup sweep's results, from accumulators to memory.
#pragma once

#include "kernels/cuda/warpgroup_products.cuh"

namespace cosformer::kernels::cuda {

// a + factor·b for eight numbers.
__device__ __forceinline__ uint4 add_scaled(const uint4& a, const uint4& b, float factor) {
  const auto add = [&](std::uint32_t x, std::uint32_t y) {
    return pack_bf16(low_of(x) + factor * low_of(y), high_of(x) + factor * high_of(y));
  };
  return {add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

// The forward's row sums: written, and turned into what scales the rows. The first of two sides leaves its sums and
// divides by their size, so that the second can undo it.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::forward_scale(
    int position, const float (&sums)[2], float (&scale)[2]) {
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::write_rows(
    std::uint32_t tile, std::uint32_t own, const Destination& to, std::int64_t begin, int position,
    const float (&scale)[2], float (&out)[kTiles][4]) {
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
        earlier[kTwoSided ? i : 0] = load_global_16(row + i * stride);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // the next chunk's, so that they will be near; gradients have no registers for it
      if (kForward && piece == 0 && has(token + (16 + i) * sign, row_length)) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(row + (16 + i) * stride));
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
  if constexpr (kBoxes) {
    wgmma::publish_shared();
    __syncwarp();
    if (lane == 0) {
      boxes::store(w.out_map, position + warp * 16, head, static_cast<int>(extent.batch), tile + warp * kBoxBytes);
    }
    __syncwarp();
    return;
  }
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
    if (inside && has(token, row_length)) store_global_16(row, x);
    row += stride;
    token += sign;
  }
  __syncwarp();
}

// Halves: gives the other half of the columns away and adds what the other warpgroup has for one's own; sums of both.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::exchange(
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
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::write_half(
    int stage, const Destination& to, std::int64_t begin, int position, const float (&scale)[2], float (&mine)[4][4]) {
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
      Io* const at = static_cast<Io*>(to.data) + extent.batch * to.batch_stride + head * to.head_stride +
                     (begin + token) * static_cast<std::int64_t>(to.time_stride) + column;
      if (kTwoSided && p.pass == SweepPass::kSecondOfTwo)
        x = add_scaled(x, load_global_16(at), kForward ? floats(kRowFactors)[row] : 1.0F);
      store_global_16(at, x);
    }
  }
  __syncwarp();
}

// e = −dout·out and 1/s of the lane's two rows; 0 where the denominator was clamped.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::query_errors(
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
    if (!kRowSums && t == 0 && half == 0 && slice == 0 && has(token, row_length)) {
      p.row_scalar[row_scalar_at(token)] = error[i] * scale[i];
    }
    if (half != 0) error[i] = 0.0F;  // the extra column is the first half's
  }
}

// From accumulators to memory.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kTiles>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::finish_rows(
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

}  // namespace cosformer::kernels::cuda
