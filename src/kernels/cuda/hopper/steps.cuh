// Steps that the Hopper kernels of narrow and of wide heads share: on tiles of 64 columns in shared memory, on the
// accumulators of one product, and on the state, a block of 64 features by 64 values (and an extra one) at a time.
#pragma once

#include "kernels/cuda/hopper/state_blocks.cuh"

namespace cosformer::kernels::cuda {

// a + factor·b for eight numbers.
__device__ __forceinline__ uint4 add_scaled(const uint4& a, const uint4& b, float factor) {
  const auto add = [&](std::uint32_t x, std::uint32_t y) {
    return pack_bf16(low_of(x) + factor * low_of(y), high_of(x) + factor * high_of(y));
  };
  return {add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

__device__ __forceinline__ float dot_of(const uint4& a, const uint4& b) {
  const float first = low_of(a.x) * low_of(b.x) + high_of(a.x) * high_of(b.x);
  const float second = low_of(a.y) * low_of(b.y) + high_of(a.y) * high_of(b.y);
  return first + low_of(a.z) * low_of(b.z) + high_of(a.z) * high_of(b.z) +
         (second + low_of(a.w) * low_of(b.w) + high_of(a.w) * high_of(b.w));
}

// x scaled by a number for each of the lane's two rows.
__device__ __forceinline__ void scale_rows(HopperEngine::A (&to)[4], const HopperEngine::A (&x)[4], float first,
                                           float second) {
  const std::uint32_t a = twice_bf16(first), b = twice_bf16(second);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    to[k] = {{multiply_pair(x[k].r[0], a), multiply_pair(x[k].r[1], b), multiply_pair(x[k].r[2], a),
              multiply_pair(x[k].r[3], b)}};
  }
}

struct HopperSteps : StateBlocks {
  using StateBlocks::StateBlocks;

  // This warp's rows of a tile as operands.
  __device__ __forceinline__ void load_rows(A (&x)[4], std::uint32_t tile, bool relu) {
    const std::uint32_t row = tile + (warp * 16 + (lane & 15)) * 128;
    const std::uint32_t swizzle = ((lane >> 4) ^ (lane & 7)) * 16;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      load_matrices(x[k].r, row + (swizzle ^ (k * 32)));
      if (relu) {
#pragma unroll
        for (int i = 0; i < 4; ++i) x[k].r[i] = relu_pair(x[k].r[i]);
      }
    }
  }

  // The number beyond a row's values as an operand. Columns 0, 1: its head, 2, 3: its rest, against head and rest of
  // the extra block.
  __device__ __forceinline__ A extra_operand(float first, float second) const {
    const std::uint32_t a = head_and_rest(first), b = head_and_rest(second);
    const std::uint32_t pick = t == 0 ? 0x1010U : 0x3232U;
    const bool has_columns = t < 2;
    return A{{has_columns ? __byte_perm(a, 0U, pick) : 0U, has_columns ? __byte_perm(b, 0U, pick) : 0U, 0U, 0U}};
  }
  // The same where that number is 1.
  __device__ __forceinline__ A ones_operand() const {
    const std::uint32_t ones = t == 0 ? 0x3f803f80U : 0U;
    return A{{ones, ones, 0U, 0U}};
  }

  // Scores times the table of distances, as operands of the product with the columns. kSecond: where the table's second
  // copy begins.
  template <int kSecond = kSecondDistances>
  __device__ __forceinline__ void weigh(const float* table, const float (&scores)[8][4], A (&weights)[4]) {
    const float* distances = table + (g % 2 == 0 ? 0 : kSecond - 1) + kChunk - warp * 16 - g + 2 * t;
    float2 weight = load_pair(distances - 8);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float2 before = weight;
      weight = load_pair(distances + n * 8);
      weights[n / 2].r[n % 2 * 2] = pack_bf16(scores[n][0] * weight.x, scores[n][1] * weight.y);
      weights[n / 2].r[n % 2 * 2 + 1] = pack_bf16(scores[n][2] * before.x, scores[n][3] * before.y);
    }
  }

  // φ(own)·out of the lane's two rows, its share of the columns.
  __device__ __forceinline__ void dots_with_features(std::uint32_t own, const float (&out)[8][4], float (&dots)[2]) {
    A features[4];
    load_rows(features, own, true);
    dots[0] = dots[1] = 0.0F;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const std::uint32_t x = features[n / 2].r[n % 2 * 2 + i];
        dots[i] += low_of(x) * out[n][2 * i] + high_of(x) * out[n][2 * i + 1];
      }
  }
  // What the lane's two rows got from earlier chunks counts towards the decay's gradient by their positions.
  __device__ __forceinline__ float decay_of_rows(int position, const float (&scale)[2], const float (&dots)[2]) const {
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = token_at(position + warp * 16 + g + 8 * i);
      if (has(token, row_length)) sum += dots[i] * scale[i] * static_cast<float>(reversed ? -token : token);
    }
    return sum;
  }

  // Features through ReLU, those of queries divided by their denominators.
  template <bool kOfQueries>
  __device__ __forceinline__ void prepare_features(std::uint32_t tile, const float* denominators) {
    uint4 pieces[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pieces[i] = load_shared_16(piece_at(tile, i));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint4& x = pieces[i];
      if constexpr (!kOfQueries) {
        x = {relu_pair(x.x), relu_pair(x.y), relu_pair(x.z), relu_pair(x.w)};
      } else {
        const float s = p.normalised ? fmaxf(denominators[fetch_row + 4 * i], p.eps) : 1.0F;
        const std::uint32_t inverse = twice_bf16(__fdividef(1.0F, s));
        x = {multiply_pair_relu(x.x, inverse), multiply_pair_relu(x.y, inverse), multiply_pair_relu(x.z, inverse),
             multiply_pair_relu(x.w, inverse)};
      }
      store_shared_16(piece_at(tile, i), x);
    }
  }

  // Products of this thread's pieces of two tiles, added to dots.
  __device__ __forceinline__ void add_dots(std::uint32_t tile, std::uint32_t other, float (&dots)[4]) {
    uint4 now[4], before[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      now[i] = load_shared_16(piece_at(tile, i));
      before[i] = load_shared_16(piece_at(other, i));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) dots[i] += dot_of(now[i], before[i]);
  }
  // And summed over the pieces of a row, to an array of rows.
  __device__ __forceinline__ void finish_dots(float (&dots)[4], float* rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float dot = dots[i];
#pragma unroll
      for (int offset = 4; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffffU, dot, offset);
      forget(dot);                                    // else the compiler picks dots[piece] from memory
      if (piece == i) rows[fetch_row + 4 * i] = dot;  // a lane of its own for each of the four rows
    }
    __syncwarp();
  }

  // e = −dout·out and 1/s of a query; e is 0 where the denominator was clamped.
  __device__ __forceinline__ float2 error_and_scale(float denominator, float dot) const {
    return {denominator >= p.eps ? -dot : 0.0F, __fdividef(1.0F, fmaxf(denominator, p.eps))};
  }
  // Leaves e/s for the keys.
  __device__ __forceinline__ void keep_error(int position, int row, float2 error_and_scale) {
    const int token = token_at(position + row);
    if (has(token, row_length)) p.row_scalar[row_scalar_at(token)] = error_and_scale.x * error_and_scale.y;
  }
  // Both for the lane's two rows.
  __device__ __forceinline__ void query_errors(const float* denominators, const float* dots, int position, bool keeps,
                                               float (&error)[2], float (&scale)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = warp * 16 + g + 8 * i;
      float2 numbers = {0.0F, 1.0F};
      if (p.normalised) {
        numbers = error_and_scale(denominators[row], dots[row]);
        if (keeps && t == 0) keep_error(position, row, numbers);
      }
      error[i] = numbers.x;
      scale[i] = numbers.y;
    }
  }

  // The forward's row sums: written, and turned into what scales the rows. The first of two sides leaves its sums and
  // divides by their size, so that the second can undo it: `factors` scale the first one's results. kTwoSided: it may
  // be either of two sides.
  template <bool kTwoSided>
  __device__ __forceinline__ void forward_scale(int position, const float (&sums)[2], float* factors,
                                                float (&scale)[2]) {
    float first[2] = {};
    if (kTwoSided && p.contribution == Contribution::kSecondOfTwo && p.normalised) {
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
      const bool writes = t == 0 && slice == 0 && has(token, row_length);
      float sum = sums[i], before = 1.0F;
      scale[i] = 1.0F;
      if (p.normalised) {
        if (kTwoSided && p.contribution == Contribution::kFirstOfTwo) {
          if (writes) p.row_scalar[row_scalar_at(token)] = sum;
          sum = fabsf(sum);
        } else {
          if (kTwoSided && p.contribution == Contribution::kSecondOfTwo) {
            before = fmaxf(fabsf(first[i]), p.eps);
            sum += first[i];
          }
          if (writes) p.denominator[denominator_at(token)] = sum;
        }
        scale[i] = __fdividef(1.0F, fmaxf(sum, p.eps));
      }
      if (kTwoSided && p.contribution == Contribution::kSecondOfTwo && t == 0) factors[row] = before * scale[i];
    }
  }

  // Results of this warp's rows into its rows of `tile`, so that whole sectors can leave.
  template <bool kScaled, int kTiles>
  __device__ __forceinline__ void stage_rows(std::uint32_t tile, const float (&scale)[2], float (&out)[kTiles][4]) {
    if constexpr (kScaled) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) out[n][i] *= scale[i / 2];
    }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; n += 2) E::store_16x16(tile, kChunk, warp * 16, n * 8, lane, out[n], out[n + 1]);
  }

  // Where this thread's rows of the result go.
  struct Target {
    Io* row;
    std::int64_t stride;
    int token, sign;
    bool inside;
  };
  __device__ __forceinline__ Target target_of(const Destination& to, int begin, int position) const {
    const int token = token_at(position + fetch_row), sign = reversed ? -4 : 4, column = slice * 64 + piece * 8;
    Io* const row = static_cast<Io*>(to.data) + anew(batch) * to.batch_stride + head * to.head_stride +
                    (begin + token) * static_cast<std::int64_t>(to.time_stride) + column;
    return {row, static_cast<std::int64_t>(to.time_stride) * sign, token, sign, column < to.columns};
  }

  // What the first of two sides has left there, for the second to add.
  __device__ __forceinline__ void fetch_earlier(std::uint32_t tile, const Target& from) {
    if (p.contribution != Contribution::kSecondOfTwo) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool present = from.inside && has(from.token + i * from.sign, row_length);
      copy_async<16>(piece_at(tile, i), from.row + i * from.stride, present);
    }
  }

  // From the tile to memory; `own`: only where it is positive. The second of two sides adds what lies in the tile
  // `earlier`, scaled by `factors`.
  template <int kTiles, bool kForward, bool kRowsAreQueries, bool kTwoSided>
  __device__ __forceinline__ void write_rows(std::uint32_t tile, std::uint32_t own, std::uint32_t earlier,
                                             const Target& to, const float* factors, const float (&scale)[2],
                                             float (&out)[kTiles][4]) {
    const bool second = kTwoSided && p.contribution == Contribution::kSecondOfTwo;
    stage_rows<kRowsAreQueries>(tile, scale, out);
    __syncwarp();
    uint4 pieces[4], others[4];
    const auto mask = [&](int i) {
      uint4 &x = pieces[i], &y = others[i];
      x = {where_positive(x.x, y.x), where_positive(x.y, y.y), where_positive(x.z, y.z), where_positive(x.w, y.w)};
    };
#pragma unroll
    for (int i = 0; i < 4; ++i) pieces[i] = load_shared_16(piece_at(tile, i));
    if (own != 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) others[i] = load_shared_16(piece_at(own, i));
#pragma unroll
      for (int i = 0; i < 4 && kTwoSided; ++i) mask(i);  // else where they leave: registers
    }
    if (second) {
#pragma unroll
      for (int i = 0; i < 4; ++i) others[i] = load_shared_16(piece_at(earlier, i));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        uint4 &x = pieces[i], &y = others[i];
        if constexpr (kForward) {
          x = add_scaled(x, y, factors[fetch_row + 4 * i]);
        } else {
          x = {add_pair(x.x, y.x), add_pair(x.y, y.y), add_pair(x.z, y.z), add_pair(x.w, y.w)};
        }
      }
    }
    Io* row = to.row;
    int token = to.token;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (!kTwoSided && own != 0) mask(i);
      if (to.inside && has(token, row_length)) store_global_16(row, pieces[i]);
      row += to.stride;
      token += to.sign;
    }
    __syncwarp();
  }
};

}  // namespace cosformer::kernels::cuda
