// The warpgroup sweep's tiles, angles and state: fetched, prepared, published.
#pragma once

#include "kernels/cuda/warpgroup_sweep.cuh"

namespace cosformer::kernels::cuda {

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::start_rows(int position) {
  if constexpr (kBoxes) {
    if (lane == 0) {
#pragma unroll
      for (int stage = 0; stage < kStages; ++stage) boxes::set_up(barrier(stage));
    }
    wgmma::publish_shared();
    __syncwarp();
    return;
  }
  const std::int64_t q_begin = extent.q_begin, k_begin = extent.k_begin;
  const int mine = half * 64, column = slice * 64;
  if constexpr (kInter) {
    x_rows = kForward ? rows_of(w.q, q_begin, position, mine)
                      : (kQueries ? rows_of(w.dout, q_begin, position, mine)
                                  : rows_of(kKeys ? w.v : w.k, k_begin, position, mine));
    if constexpr (kBoth) x2_rows = rows_of(w.k, k_begin, position, 0);
    if constexpr (kHasOwn) {
      own_rows = kQueries ? rows_of(w.q, q_begin, position, column) : rows_of(w.k, k_begin, position, column);
    }
    if constexpr (kHasPrior) prior_rows = rows_of(w.out, q_begin, position, mine);
  }
  if constexpr (kRowSums) {
    slice_rows = rows_of(w.q, q_begin, position, 0);
  } else if constexpr (kUpdate) {
    const int feature = kFeatureRows ? mine : column, value = kFeatureRows ? column : mine;
    const Io* features =
        kRowsAreQueries ? rows_of(w.k, k_begin, position, feature) : rows_of(w.q, q_begin, position, feature);
    const Io* values =
        kRowsAreQueries ? rows_of(w.v, k_begin, position, value) : rows_of(w.dout, q_begin, position, value);
    contracted_rows = kFeatureRows ? features : values;
    slice_rows = kFeatureRows ? values : features;
  }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::fetch_tile(
    std::uint32_t tile, const Io*& rows, const TileSource& source, int first_column, int length, unsigned seen,
    int position) {
  const int sign = reversed ? -4 : 4;
  const std::int64_t stride = static_cast<std::int64_t>(source.time_stride) * sign;
  int token = token_at(position + fetch_row);
  const bool inside = first_column + piece * 8 < source.columns;
  const Io* from = rows;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    copy_async<16>(piece_at(tile, i), from, inside && has(token, length) && (!kMasked || (seen >> i & 1U) != 0));
    from += stride;
    token += sign;
  }
  rows += 16 * stride;
}

// Which of this thread's keys are present, a bit for each row. An absent key is fetched as zeros: its features are
// zero, and so is all that follows from them.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ unsigned WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::present_keys(
    int position) const {
  if constexpr (!kMasked) return 15U;
  const int sign = reversed ? -4 : 4;
  const int token = token_at(position + fetch_row);
  const bool* mask = p.key_mask + extent.batch * p.mask_batch_stride;
  bool seen[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int key = token + i * sign;
    seen[i] = has(key, extent.k_length) && mask[(extent.k_begin + key) * p.mask_time_stride];
  }
  return (seen[0] ? 1U : 0U) | (seen[1] ? 2U : 0U) | (seen[2] ? 4U : 0U) | (seen[3] ? 8U : 0U);
}

// Starts the copies of the chunk at `position`; the rows' pointers move on to the next one. The columns of the slice
// are the second half's to fetch.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::fetch(int stage, int position) {
  const unsigned keys = present_keys(position);
  const unsigned rows = kRowsAreQueries ? 15U : keys, columns = kRowsAreQueries ? keys : 15U;
  const int mine = half * 64;
  if constexpr (kInter) {
    fetch_tile(x_tile(stage), x_rows, kForward ? w.q : (kQueries ? w.dout : (kKeys ? w.v : w.k)), mine, row_length,
               rows, position);
    if constexpr (kBoth) fetch_tile(x_tile(stage) + kTile, x2_rows, w.k, 0, row_length, rows, position);
    if constexpr (kHasPrior) {
      if (p.normalised) fetch_tile(prior_tile(), prior_rows, w.out, mine, row_length, rows, position);
    }
  }
  if constexpr (kRowSums) {
    fetch_tile(slice_tile(stage), slice_rows, w.q, 0, row_length, rows, position);
  } else if constexpr (kUpdate) {
    const TileSource& features = kRowsAreQueries ? w.k : w.q;
    const TileSource& values = kRowsAreQueries ? w.v : w.dout;
    fetch_tile(contracted_tile(stage), contracted_rows, kFeatureRows ? features : values, mine, column_length, columns,
               position);
    if (half == kHalves - 1) {
      fetch_tile(slice_tile(stage), slice_rows, kFeatureRows ? values : features, slice * 64, column_length, columns,
                 position);
    }
  }
  if constexpr (kHasPrior || (!kRowsAreQueries && kUpdate)) {
    if (p.normalised) {  // denominators of the warp's own rows, and behind them e
      const int row = warp * 16 + lane % 16;
      const int token = token_at(position + row);
      const bool valid = has(token, extent.q_length);
      const std::uint32_t at = shared_address(array(0)) + (stage * kChunk + row) * 4;
      if (lane < 16) {
        copy_async<4>(at + kRawDenominators, p.denominator + (valid ? denominator_at(token) : 0), valid);
      } else if (!kRowsAreQueries) {
        copy_async<4>(at + kRawErrors, p.row_scalar + (valid ? row_scalar_at(token) : 0), valid);
      }
    }
  }
  commit_copies();
}

// The same through boxes: one lane asks for the warp's rows of each tile. Zeros come for rows outside the tensor.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::fetch_boxes(int stage,
                                                                                                    int position) {
  if (lane != 0) return;
  boxes::await_stores_read();  // results of the chunk before this one go out from where these rows come to
  const auto from = [&](const TileMap& map, std::uint32_t tile) {
    boxes::fetch(tile + warp * kBoxBytes, map, position + warp * 16, head, static_cast<int>(extent.batch),
                 barrier(stage));
  };
  boxes::expect(barrier(stage), (kUpdate ? 3 : 1) * kBoxBytes);
  from(w.q_map, x_tile(stage));
  if constexpr (kUpdate) {
    from(w.k_map, feature_tile(stage));
    from(w.v_map, value_tile(stage));
  }
}

// A group of copies in any case: waiting counts groups.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::fetch_if_before(int end,
                                                                                                        int stage,
                                                                                                        int position) {
  if constexpr (kBoxes) {
    if (position < end) fetch_boxes(stage, position);
    __syncwarp();
  } else if (position < end) {
    fetch(stage, position);
  } else {
    commit_copies();
  }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::fetch_own(int position) {
  if constexpr (kHasOwn) {
    fetch_tile(own_tile(), own_rows, kQueries ? w.q : w.k, slice * 64, row_length,
               kQueries ? 15U : present_keys(position), position);
    commit_copies();
  }
}

// Features through ReLU, those of queries divided by their denominators.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::prepare_features(
    std::uint32_t tile, int stage) {
  const float* denominators = floats(kRawDenominators) + stage * kChunk;
  uint4 pieces[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) pieces[i] = load_shared_16(piece_at(tile, i));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint4& x = pieces[i];
    if constexpr (!kQueryColumns) {
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

// The number beyond the values of a row of the columns.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::set_extra(int row, float x) {
  const std::uint32_t pair = head_and_rest(x);
  *reinterpret_cast<uint2*>(shared + kBlock + row * 128 + row % 8 * 16) = {pair, pair};
}

// Features, the extra block of the values, and the rows' dout·out: each warp its own 16 rows.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::prepare(int stage,
                                                                                                int position) {
  __syncwarp();  // what other lanes copied
  if constexpr (kUpdate) {
    if (kFeatureRows || half == kHalves - 1) prepare_features(feature_tile(stage), stage);
    if constexpr (!kRowsAreQueries) {
      if (p.normalised && half == 0 && lane < 16) {
        const int row = warp * 16 + lane;
        const int at = stage * kChunk + row;
        set_extra(row, floats(kRawErrors)[at] * fmaxf(floats(kRawDenominators)[at], p.eps));
      }
    }
  }
  if constexpr (kHasPrior) {
    if (!p.normalised) return;
    uint4 now[4], before[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      now[i] = load_shared_16(piece_at(x_tile(stage), i));
      before[i] = load_shared_16(piece_at(prior_tile(), i));
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
      if (piece == i) floats(kRowDots)[fetch_row + 4 * i] = dot;  // a lane of its own for each of the four rows
    }
    __syncwarp();
    if constexpr (kRowSums) {
      if (lane < 16) {
        const int row = warp * 16 + lane;
        const bool clamped = floats(kRawDenominators)[stage * kChunk + row] < p.eps;
        set_extra(row, clamped ? 0.0F : -floats(kRowDots)[row]);
      }
    }
  }
}

// Decays of a chunk whose rows before `first` and from `last` on are outside the frame. Of its 16 rows a warp's first
// 16 lanes keep the decay and the turn as rows, the others as columns.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::set_powers(int first,
                                                                                                   int last) {
  const int r = warp * 16 + lane % 16;
  if (lane >= 16) {
    power = r < last ? decay_of(log_decay, last - 1 - r) : 0.0F;
  } else {
    power = decay_of(log_decay, r - first + 1);
  }
  chunk_decay = decay_of(log_decay, last - first);
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::set_turns(int position,
                                                                                                  bool first_chunk) {
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
    Io* weights = reinterpret_cast<Io*>(array(kWeights + weight_set(position)));
    weights[at] = __float2bfloat16_rn(turn.cosine * power);
    weights[64 + at] = __float2bfloat16_rn(turn.sine * power);
  } else {
    if constexpr (!kInter) return;
    reinterpret_cast<float2*>(array(kRowTurns))[r] = {turn.cosine * power, turn.sine * power};
  }
}

// cos(θΔ)γ^Δ by distance, zero where a row does not see the column: entry kChunk − Δ, and once more shifted by one, so
// that pairs are aligned in one of them.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::build_distances() {
  float* table = floats(kDistances);
  for (int i = threadIdx.x % 128; i < kDistanceSize; i += 128) {
    const int distance = kChunk - i;
    const float weight = distance >= p.strict ? turn_of(theta, distance).cosine * decay_of(log_decay, distance) : 0.0F;
    table[i] = weight;
    if (i > 0) table[kSecondDistances + i - 1] = weight;
  }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::clear_blocks() {
  const uint4 zero = {0, 0, 0, 0};
  for (int i = threadIdx.x % 128 * 16; i < kTile; i += 128 * 16) {
    if (kUpdate && half == 0) store_shared_16(base + kBlock + i, zero);
    if constexpr (kInter) {
      store_shared_16(state_tile(0) + kTile + i, zero);
      store_shared_16(state_tile(1) + kTile + i, zero);
    }
  }
  __syncthreads();
  if (kUpdate && !kQueryColumns && threadIdx.x < kChunk) {
    constexpr std::uint32_t kOne = 0x3f80U;
    const int row = threadIdx.x;
    *reinterpret_cast<uint2*>(shared + kBlock + row * 128 + row % 8 * 16) = {kOne, kOne};
  }
}

// visit(part, feature, value or −1 for the extra column, number)
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kFirst, int kEnd, class Visit>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::for_each_state(Visit visit) {
#pragma unroll
  for (int part = kFirst; part < kEnd; ++part)
#pragma unroll
    for (int n = 0; n < 9; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int f = feature_base + warp * 16 + g + i / 2 * 8;
        visit(part, f, n < 8 ? value_base + n * 8 + 2 * t + i % 2 : -1, i % 2, state[part][n][i]);
      }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kFirst, int kEnd>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::clear_state() {
  for_each_state<kFirst, kEnd>([](int, int, int, int, float& x) { x = 0.0F; });
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
template <int kFirst, int kEnd>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::load_state() {
  const float* from =
      p.initial == InitialState::kZero
          ? nullptr
          : slot_in(p.states, p.slots, p.initial == InitialState::kOfSegment ? segment * p.slot_step : p.total_slot);
  clear_state<kFirst, kEnd>();
  if (from == nullptr) return;
  for_each_state<kFirst, kEnd>([&](int part, int f, int u, int odd, float& x) {
    if (f >= p.dim) return;
    if (u >= 0) {
      if (u < p.value_dim) x = from[(part * p.dim + f) * p.value_dim + u];
    } else if (t < 2 && odd == 0) {  // columns 0 and 2 of the extra block
      x = from[2 * p.dim * p.value_dim + part * p.dim + f];
    }
  });
}

// As if the sum that store_state has just stored were loaded; without that call before, the rests would be missing.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::take_state(
    int part, const float (&sum)[2][9][4]) {
#pragma unroll
  for (int n = 0; n < 9; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) state[part][n][i] = n < 8 || i % 2 == 0 ? sum[part][n][i] : 0.0F;
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::store_state(int index) {
  float* to = kRowSums ? slot_in(w.sums, w.sum_slots, index) : slot_in(p.states, p.slots, index);
#pragma unroll
  for (int part = 0; part < 2; ++part)
#pragma unroll
    for (int i = 0; i < 4; i += 2) state[part][8][i] += state[part][8][i + 1];
  for_each_state<0, 2>([&](int part, int f, int u, int odd, float& x) {
    if (f >= p.dim) return;
    if (u >= 0) {
      if (u < p.value_dim) to[(part * p.dim + f) * p.value_dim + u] = x;
    } else if (t == 0 && odd == 0 && (kFeatureRows ? slice : half) == 0) {
      to[2 * p.dim * p.value_dim + part * p.dim + f] = x;
    }
  });
}

// Puts a part of the state where the matrix unit can read it as an operand.
template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::publish_state(int part) {
  const std::uint32_t tile = state_tile(part);
  float(&s)[9][4] = state[part];
#pragma unroll
  for (int n = 0; n < 8; n += 2) E::store_16x16(tile, kChunk, warp * 16, n * 8, lane, s[n], s[n + 1]);
  const std::uint32_t row = warp * 16 + (lane & 15);
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(tile + kTile + row * 128 + (row & 7) * 16),
      "r"(head_and_rest(s[8][0] + s[8][1])), "r"(head_and_rest(s[8][2] + s[8][3]))
      : "memory");
}

}  // namespace cosformer::kernels::cuda
