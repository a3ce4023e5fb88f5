// What the Hopper kernels do with blocks of the state: in accumulators, in memory, and published as an operand; and the
// features that are added to them.
#pragma once

#include "kernels/cuda/hopper/place.cuh"

namespace cosformer::kernels::cuda {

struct StateBlocks : HopperPlace {
  using HopperPlace::HopperPlace;

  // Blocks of the state, from (feature, value) on, by pairs of neighbours in a row: heads are whole multiples of eight.
  // Tile 8 is the extra column: its head and rest were summed apart.
  template <class Visit>
  __device__ __forceinline__ void for_each_pair(int feature, int value, Visit visit) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const int f = feature + warp * 16 + g + i / 2 * 8, u = value + n * 8 + 2 * t;
        if (f < p.dim && u < p.value_dim) visit(n, i, f * p.value_dim + u);
      }
  }
  template <class Visit>
  __device__ __forceinline__ void for_each_extra(int feature, Visit visit) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int f = feature + warp * 16 + g + i / 2 * 8;
      if (f < p.dim) visit(i, 2 * p.dim * p.value_dim + f);
    }
  }
  template <int kTiles>
  __device__ __forceinline__ void clear_block(float (&block)[kTiles][4]) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) block[n][i] = 0.0F;
  }
  template <int kTiles>
  __device__ __forceinline__ void load_block(float (&block)[kTiles][4], const float* from, int part, int feature,
                                             int value) {
    clear_block(block);
    if (from == nullptr) return;
    for_each_pair(feature, value, [&](int n, int i, int at) {
      const float2 pair = load_pair(from + part * p.dim * p.value_dim + at);
      block[n][i] = pair.x;
      block[n][i + 1] = pair.y;
    });
    if (kTiles == 9 && t < 2) {  // columns 0 and 2 of the extra block
      for_each_extra(feature, [&](int i, int at) { block[kTiles - 1][i] = from[part * p.dim + at]; });
    }
  }
  __device__ __forceinline__ void add_rests(float (&block)[9][4]) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) block[8][i] += block[8][i + 1];
  }
  template <int kTiles>
  __device__ __forceinline__ void store_block(float (&block)[kTiles][4], float* to, int part, int feature, int value,
                                              bool with_extra = true) {
    for_each_pair(feature, value, [&](int n, int i, int at) {
      store_io_pair(to + part * p.dim * p.value_dim + at, {block[n][i], block[n][i + 1]});
    });
    if (kTiles == 9 && with_extra && t == 0) {
      for_each_extra(feature, [&](int i, int at) { to[part * p.dim + at] = block[kTiles - 1][i]; });
    }
  }
  template <int kTiles>
  __device__ __forceinline__ void scale_block(float (&block)[kTiles][4], float factor) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) block[n][i] *= factor;
  }
  // A block without its extra column.
  template <int kTiles>
  __device__ __forceinline__ void publish_values(const float (&block)[kTiles][4], std::uint32_t tile) {
#pragma unroll
    for (int n = 0; n < 8; n += 2) E::store_16x16(tile, kChunk, warp * 16, n * 8, lane, block[n], block[n + 1]);
  }
  // Puts a block where the matrix unit can read it as an operand, the extra column from piece `piece_of_extra` of the
  // rows of its tile on.
  template <int kTiles>
  __device__ __forceinline__ void publish_block(float (&block)[kTiles][4], std::uint32_t tile, std::uint32_t extra,
                                                int piece_of_extra) {
    publish_values(block, tile);
    if constexpr (kTiles == 9) {
      const std::uint32_t row = warp * 16 + (lane & 15);
      store_matrices(extra + row * 128 + ((piece_of_extra ^ (row & 7)) * 16), head_and_rest(block[8][0] + block[8][1]),
                     head_and_rest(block[8][2] + block[8][3]));
    }
  }

  // The number beyond the values of a row of the columns, two bfloat16 numbers (head and rest) and once more, so that
  // the other operand can bring head and rest too.
  __device__ __forceinline__ void set_extra(unsigned char* block, int piece_of_extra, int row, float x) {
    const std::uint32_t pair = head_and_rest(x);
    *reinterpret_cast<uint2*>(block + row * 128 + ((piece_of_extra ^ row % 8) * 16)) = {pair, pair};
  }

  // The same where it is 1, whose rest is none.
  __device__ __forceinline__ void set_one(unsigned char* block, int piece_of_extra, int row) {
    constexpr std::uint32_t kOne = 0x3f80U;
    *reinterpret_cast<uint2*>(block + row * 128 + ((piece_of_extra ^ row % 8) * 16)) = {kOne, kOne};
  }

  // The features of a tile as the operand of the state's sum: transposed, times the columns' cosines and sines.
  __device__ __forceinline__ void weighed_features(A (&parts)[2][4], std::uint32_t tile, const Io* weights) {
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      A raw[2];
      load_transposed(raw[0], tile, k);
      load_transposed(raw[1], tile, k + 1);
      weigh_features(parts, raw, weights, k);
    }
  }
  // Step k of a tile's depth.
  __device__ __forceinline__ void load_transposed(A& raw, std::uint32_t tile, int k) {
    const std::uint32_t row = tile + ((lane & 7) + (lane >> 4) * 8) * 128;
    const std::uint32_t swizzle = ((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) * 16;
    load_matrices_transposed(raw.r, row + swizzle + k * 2048);
  }
  // All of a tile's features as they came but for ReLU.
  __device__ __forceinline__ void load_raw_features(A (&raw)[2][2], std::uint32_t tile) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      A& step = raw[k / 2][k % 2];
      load_transposed(step, tile, k);
      step = {{relu_pair(step.r[0]), relu_pair(step.r[1]), relu_pair(step.r[2]), relu_pair(step.r[3])}};
    }
  }
  // Steps k and k + 1 of one part. Depth slots 2t, 2t + 1 and 2t + 8, 2t + 9 of step k: words 2k and 2k + 1 of the
  // lane's weights.
  __device__ __forceinline__ void weigh_part(A (&to)[4], const A (&raw)[2], const Io* weights, int part, int k) {
    const uint4 words = load_shared_16(shared_address(weights) + t * 32 + part * 128 + k * 8);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const std::uint32_t low = j == 0 ? words.x : words.z, high = j == 0 ? words.y : words.w;
      to[k + j] = {{multiply_pair(raw[j].r[0], low), multiply_pair(raw[j].r[1], low), multiply_pair(raw[j].r[2], high),
                    multiply_pair(raw[j].r[3], high)}};
    }
  }
  __device__ __forceinline__ void weigh_features(A (&parts)[2][4], const A (&raw)[2], const Io* weights, int k) {
#pragma unroll
    for (int part = 0; part < 2; ++part) weigh_part(parts[part], raw, weights, part, k);
  }
};

}  // namespace cosformer::kernels::cuda
