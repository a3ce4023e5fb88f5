// The warpgroup sweep's tiles, angles and state: fetched, prepared, published.
#pragma once

#include "kernels/cuda/warpgroup_sweep.cuh"

namespace cosformer::kernels::cuda {

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::start_rows(int position) {
  const std::int64_t q_begin = extent.q_begin, k_begin = extent.k_begin;
  if constexpr (kInter) {
    x_rows = kForward ? rows_of(w.q, q_begin, position)
                      : (kQueries ? rows_of(w.dout, q_begin, position) : rows_of(w.v, k_begin, position));
    if constexpr (kKeys) x2_rows = rows_of(w.k, k_begin, position);
    if constexpr (kQueries) {
      own_rows = rows_of(w.q, q_begin, position);
      prior_rows = rows_of(w.out, q_begin, position);
    }
  }
  if constexpr (kUpdate) {
    feature_rows = kKeys ? rows_of(w.q, q_begin, position) : rows_of(w.k, k_begin, position);
    value_rows = kKeys ? rows_of(w.dout, q_begin, position) : rows_of(w.v, k_begin, position);
  }
}

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::fetch_tile(std::uint32_t tile, const Io*& rows,
                                                                          const TileSource& source, int length,
                                                                          int position) {
  const int sign = reversed ? -4 : 4;
  const std::int64_t stride = static_cast<std::int64_t>(source.time_stride) * sign;
  int token = token_at(position + fetch_row);
  const bool inside = piece * 8 < source.columns;
  const Io* from = rows;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    copy_async<16>(piece_at(tile, i), from, inside && has(token, length));
    from += stride;
    token += sign;
  }
  rows += 16 * stride;
}

// Starts the copies of the chunk at `position`; the rows' pointers move on to the next one.
template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::fetch(int stage, int position) {
  const std::uint32_t tiles = base + stage * kStageBytes;
  if constexpr (kInter) {
    fetch_tile(tiles + kX, x_rows, kForward ? w.q : (kQueries ? w.dout : w.v), row_length, position);
    if constexpr (kKeys) fetch_tile(tiles + kX2, x2_rows, w.k, row_length, position);
    if constexpr (kQueries) {
      if (p.normalised) fetch_tile(base + kPrior, prior_rows, w.out, row_length, position);
    }
  }
  if constexpr (kUpdate) {
    fetch_tile(tiles + kFeatures, feature_rows, kKeys ? w.q : w.k, column_length, position);
    fetch_tile(tiles + kValues, value_rows, kKeys ? w.dout : w.v, column_length, position);
  }
  if constexpr ((kQueries && kInter) || (kKeys && kUpdate)) {
    if (p.normalised) {  // denominators of the warp's own rows, and behind them e
      const int row = warp * 16 + lane % 16;
      const int token = token_at(position + row);
      const bool valid = has(token, extent.q_length);
      if (lane < 16) {
        copy_async<4>(base + kRawDenominators + (stage * kChunk + row) * 4,
                      p.denominator + (valid ? denominator_at(token) : 0), valid);
      } else if (kKeys) {
        copy_async<4>(base + kRawErrors + (stage * kChunk + row) * 4, p.row_scalar + (valid ? row_scalar_at(token) : 0),
                      valid);
      }
    }
  }
  commit_copies();
}

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::fetch_own(int position) {
  if constexpr (kQueries && kInter) fetch_tile(base + kOwn, own_rows, w.q, row_length, position);
  commit_copies();
}

// Features through ReLU, the extra block of the values, and the rows' e: each warp its own 16 rows.
template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::prepare(int stage, int position) {
  const std::uint32_t tiles = base + stage * kStageBytes;
  const float* denominators = floats(kRawDenominators) + stage * kChunk;
  __syncwarp();  // what other lanes copied
  if constexpr (kUpdate) {
    uint4 pieces[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pieces[i] = load_shared_16(piece_at(tiles + kFeatures, i));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint4& x = pieces[i];
      if constexpr (kKeys) {
        const float s = p.normalised ? fmaxf(denominators[fetch_row + 4 * i], p.eps) : 1.0F;
        const std::uint32_t inverse = twice_bf16(__fdividef(1.0F, s));
        x = {multiply_pair_relu(x.x, inverse), multiply_pair_relu(x.y, inverse), multiply_pair_relu(x.z, inverse),
             multiply_pair_relu(x.w, inverse)};
      } else {
        x = {relu_pair(x.x), relu_pair(x.y), relu_pair(x.z), relu_pair(x.w)};
      }
      store_shared_16(piece_at(tiles + kFeatures, i), x);
    }
    if constexpr (kKeys) {
      if (p.normalised && lane < 16) {
        const int row = warp * 16 + lane;
        const float error = floats(kRawErrors)[stage * kChunk + row] * fmaxf(denominators[row], p.eps);
        const std::uint32_t pair = head_and_rest(error);
        *reinterpret_cast<uint2*>(shared + kBlock + row * 128 + row % 8 * 16) = {pair, pair};
      }
    }
  }
  if constexpr (kQueries && kInter) {
    float2* errors = reinterpret_cast<float2*>(shared + kRowErrors);
    if (p.normalised) {
      uint4 now[4], before[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        now[i] = load_shared_16(piece_at(tiles + kX, i));
        before[i] = load_shared_16(piece_at(base + kPrior, i));
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 &a = now[i], &b = before[i];
        float dot = low_of(a.x) * low_of(b.x) + high_of(a.x) * high_of(b.x);
        float dot2 = low_of(a.y) * low_of(b.y) + high_of(a.y) * high_of(b.y);
        dot += low_of(a.z) * low_of(b.z) + high_of(a.z) * high_of(b.z);
        dot2 += low_of(a.w) * low_of(b.w) + high_of(a.w) * high_of(b.w);
        dot += dot2;
#pragma unroll
        for (int offset = 4; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffffU, dot, offset);
        if (piece == i) {  // a lane of its own for each of the four rows
          const int row = fetch_row + 4 * i;
          const float s = denominators[row];
          const float inverse = __fdividef(1.0F, fmaxf(s, p.eps));
          const float error = s >= p.eps ? -dot : 0.0F;
          errors[row] = {error, inverse};
          const int token = token_at(position + row);
          if (has(token, row_length)) p.row_scalar[row_scalar_at(token)] = error * inverse;
        }
      }
    } else if (lane < 16) {
      errors[warp * 16 + lane] = {0.0F, 1.0F};
    }
    __syncwarp();
  }
}

// Decays of a chunk whose rows before `first` and from `last` on are outside the frame. Of its 16 rows a warp's first 16
// lanes keep the decay and the turn as rows, the others as columns.
template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::set_powers(int first, int last) {
  const int r = warp * 16 + lane % 16;
  if (lane >= 16) {
    power = r < last ? decay_of(log_decay, last - 1 - r) : 0.0F;
  } else {
    power = decay_of(log_decay, r - first + 1);
  }
  chunk_decay = decay_of(log_decay, last - first);
}

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::set_turns(int position, bool first_chunk) {
  const int r = warp * 16 + lane % 16;
  constexpr int kExactEvery = 16;  // in between, rotations
  if (first_chunk || position / kChunk % kExactEvery == 0) {
    turn = turn_of(theta, first_position + token_at(position + r));
  } else {
    turn = {turn.cosine * step.cosine - turn.sine * step.sine, turn.sine * step.cosine + turn.cosine * step.sine};
  }
  if (lane >= 16) {  // token 16k + 8i + 2t + j at [t][k][i][j]
    if constexpr (!kUpdate) return;
    const int at = (r % 8 / 2 * 8 + r / 16 * 2 + r / 8 % 2) * 2 + r % 2;
    Io* weights = reinterpret_cast<Io*>(shared + kWeights);
    weights[at] = __float2bfloat16_rn(turn.cosine * power);
    weights[64 + at] = __float2bfloat16_rn(turn.sine * power);
  } else {
    if constexpr (!kInter) return;
    reinterpret_cast<float2*>(shared + kRowTurns)[r] = {turn.cosine * power, turn.sine * power};
  }
}

// cos(θΔ)γ^Δ by distance, zero where a row does not see the column: entry kChunk − Δ, and once more shifted by one, so
// that pairs are aligned in one of them.
template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::build_distances() {
  float* table = floats(kDistances);
  for (int i = threadIdx.x; i < kDistanceSize; i += kThreads) {
    const int distance = kChunk - i;
    const float weight = distance >= p.strict ? turn_of(theta, distance).cosine * decay_of(log_decay, distance) : 0.0F;
    table[i] = weight;
    if (i > 0) table[kDistanceSize + i - 1] = weight;
  }
}

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::clear_blocks() {
  const uint4 zero = {0, 0, 0, 0};
  for (int i = threadIdx.x * 16; i < kTile; i += kThreads * 16) {
    if constexpr (kUpdate) store_shared_16(base + kBlock + i, zero);
    if constexpr (kInter) {
      store_shared_16(base + kState + kTile + i, zero);
      store_shared_16(base + kState + 3 * kTile + i, zero);
    }
  }
  __syncthreads();
  if (kUpdate && !kKeys && threadIdx.x < kChunk) {
    constexpr std::uint32_t kOne = 0x3f80U;
    const int row = threadIdx.x;
    *reinterpret_cast<uint2*>(shared + kBlock + row * 128 + row % 8 * 16) = {kOne, kOne};
  }
}

// visit(part, feature, value or −1 for the extra column, number)
template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
template <class Visit>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::for_each_state(Visit visit) {
#pragma unroll
  for (int part = 0; part < 2; ++part)
#pragma unroll
    for (int n = 0; n < 9; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int f = warp * 16 + g + i / 2 * 8;
        visit(part, f, n < 8 ? n * 8 + 2 * t + i % 2 : -1, i % 2, state[part][n][i]);
      }
}

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::load_state() {
  const float* from = p.initial == InitialState::kZero
                          ? nullptr
                          : slot(p.initial == InitialState::kOfSegment ? segment : p.total_slot);
  for_each_state([](int, int, int, int, float& x) { x = 0.0F; });
  if (from == nullptr) return;
  for_each_state([&](int part, int f, int u, int odd, float& x) {
    if (f >= p.dim) return;
    if (u >= 0) {
      if (u < p.value_dim) x = from[(part * p.dim + f) * p.value_dim + u];
    } else if (t < 2 && odd == 0) {  // columns 0 and 2 of the extra block
      x = from[2 * p.dim * p.value_dim + part * p.dim + f];
    }
  });
}

template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::store_state(int index) {
  float* to = slot(index);
#pragma unroll
  for (int part = 0; part < 2; ++part)
#pragma unroll
    for (int i = 0; i < 4; i += 2) state[part][8][i] += state[part][8][i + 1];
  for_each_state([&](int part, int f, int u, int odd, float& x) {
    if (f >= p.dim) return;
    if (u >= 0) {
      if (u < p.value_dim) to[(part * p.dim + f) * p.value_dim + u] = x;
    } else if (t == 0 && odd == 0) {
      to[2 * p.dim * p.value_dim + part * p.dim + f] = x;
    }
  });
}

// Puts the state where the matrix unit can read it as an operand.
template <WarpgroupPass kPass_, Mode kMode, bool kDecayGradient>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kDecayGradient>::publish_state() {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const std::uint32_t tile = base + kState + part * 2 * kTile;
    float(&s)[9][4] = state[part];
#pragma unroll
    for (int n = 0; n < 8; n += 2) E::store_16x16(tile, kChunk, warp * 16, n * 8, lane, s[n], s[n + 1]);
    const std::uint32_t row = warp * 16 + (lane & 15);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(tile + kTile + row * 128 +
                                                                                 (row & 7) * 16),
                 "r"(head_and_rest(s[8][0] + s[8][1])), "r"(head_and_rest(s[8][2] + s[8][3]))
                 : "memory");
  }
}

}  // namespace cosformer::kernels::cuda
