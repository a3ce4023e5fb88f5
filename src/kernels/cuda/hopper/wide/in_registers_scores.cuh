// The warpgroup that fetches a wide head's chunks and makes what the values are multiplied with: a warp its own 16
// rows.
//
// It sets the pace: what comes from shared memory is asked for early, and what others need is made while its own
// products are under way.
#pragma once

#include "kernels/cuda/hopper/tma.cuh"
#include "kernels/cuda/hopper/wide/in_registers_layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct InRegistersScores : InRegisters {
  using InRegisters::InRegisters;
  Turn step;                   // of a chunk
  std::uint32_t row_turns[4];  // of this lane's two rows, as bfloat16 twice: cosines, then sines
  float* denominators;         // of the head, where wanted

  // The sum over all earlier keys, of this lane's two features with cosines and with sines, as add_to_sum has them. In
  // shared memory between chunks.
  struct alignas(16) Sum {
    float of[2][2];
  };
  __device__ __forceinline__ Sum& kept_sum() const {
    return reinterpret_cast<Sum*>(shared + L::kSum)[warp * 16 + g * 2 + t % 2];
  }
  // Where the head's rows are, kept in shared memory: registers are scarce here.
  struct Rows {
    const Io *q, *k, *v;
  };
  __device__ __forceinline__ const Rows& rows() const { return *reinterpret_cast<const Rows*>(shared + L::kRows); }
  __device__ __forceinline__ int summed_feature(int i) const { return t % 2 * 64 + warp * 16 + g + 8 * i; }

  __device__ __forceinline__ void fetch_both(int tile, int tile_bytes, const Io* rows, const TileSource& source,
                                             int length, unsigned seen, int position) {
    rows += (position + fetch_row) * static_cast<std::int64_t>(source.time_stride) + piece * 8;
    const Io* beside = rows + 64;
    fetch_tile<L::kMasked>(base + tile, rows, source, 0, length, seen, position);
    fetch_tile<L::kMasked>(base + tile + tile_bytes, beside, source, 64, length, seen, position);
  }
  // Three warps bring one tensor's rows each.
  __device__ __forceinline__ void fetch_by_tma(int stage, int position) {
    const std::uint32_t barrier = base + L::fetched(stage);
    wgmma::publish_shared();  // after what others have written there
    mbarrier::arrive_expect_tx(barrier, 2 * kTile);
    const int tile =
        warp == 0 ? L::key_tile(stage, 0) : (warp == 1 ? L::query_tile(stage, 0, 0) : L::value_tile(stage, 0));
    const int beside = warp == 0 ? L::kKeyTile : kTile;
    const TensorMap& map = warp == 0 ? w.k_map : (warp == 1 ? w.q_map : w.v_map);
    tma::fetch(base + tile, map, position, head, batch, barrier);
    tma::fetch(base + tile + beside, map, position, head, batch, barrier, 64);
  }
  __device__ __forceinline__ void fetch(int stage, int position) {
    if constexpr (L::kTma) {
      if (warp < 3 && lane == 0) fetch_by_tma(stage, position);
      return;
    }
    know_lane();
    const unsigned keys = present_keys<L::kMasked>(position);
    fetch_both(L::key_tile(stage, 0), L::kKeyTile, rows().k, w.k, column_length, keys, position);
    fetch_both(L::query_tile(stage, 0, 0), kTile, rows().q, w.q, row_length, 15U, position);
    fetch_both(L::value_tile(stage, 0), kTile, rows().v, w.v, column_length, keys, position);
  }

  // The sum over earlier keys as four more keys of a chunk, each part its head and its rest: what the queries' product
  // with the chunk's keys gives for these is what the rows' sums need.
  __device__ __forceinline__ void publish_sum(int stage, const Sum& sum) {
    const std::uint32_t rows = base + L::key_tile(stage, t - 2) + kTile + g * 2;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const std::uint32_t pair = head_and_rest(sum.of[i][part]), at = (warp * 2 + i) * 16;
        store_shared_2(rows + part * 256 + (at ^ (part * 32)), pair);
        store_shared_2(rows + part * 256 + 128 + (at ^ (part * 32 + 16)), pair >> 16);
      }
  }
  // The turn and the decay of this lane's row or key in the first chunk, in the last one where it is not whole, and now
  // and then.
  __device__ __forceinline__ void set_turn(int stage, int position) {
    int first_row = -1, last_row = -1;
    follow_powers(position, first_row, last_row);
    const Angles& angles = reinterpret_cast<const Angles*>(shared + L::kAngles)[warp];
    turn = turn_of(angles.theta, angles.first_position + (position + warp * 16 + lane % 16));
    publish_turns(stage);
    take_row_turns();
  }
  // In between, rotations.
  __device__ __forceinline__ void rotate_turn(int stage) {
    turn = {turn.cosine * step.cosine - turn.sine * step.sine, turn.sine * step.cosine + turn.cosine * step.sine};
    publish_turns(stage);
  }
  // Lanes g and g + 8 have those of this lane's two rows.
  __device__ __forceinline__ void take_row_turns() {
    const std::uint32_t cosine = twice_bf16(turn.cosine * power), sine = twice_bf16(turn.sine * power);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      row_turns[i] = __shfl_sync(0xffffffffU, cosine, g + 8 * i);
      row_turns[2 + i] = __shfl_sync(0xffffffffU, sine, g + 8 * i);
    }
  }
  // Turns of this lane's key as operands have them (token 16k + 8i + 2t + j at [t][k][i][j], cosines, then sines), and
  // as two more rows of keys, twice, for the sum's product: whatever it gives for the other four is left.
  __device__ __forceinline__ void publish_turns(int stage) {
    const unsigned r = lane % 16;
    const float cosine = turn.cosine * power, sine = turn.sine * power;
    if (lane < 16) return;
    const std::uint32_t pair = pack_bf16(cosine, sine);
    const std::uint32_t at = base + L::turns(stage) + (r % 8 / 2 * 8 + warp * 2 + r / 8) * 4 + r % 2 * 2;
    store_shared_2(at, pair);
    store_shared_2(at + 128, pair >> 16);
    const std::uint32_t rows = base + L::key_tile(stage, 0) + kTile + 512 + r % 8 * 2, piece = (warp * 2 + r / 8) * 16;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      store_shared_2(rows + j * 128 + (piece ^ (64 + j * 16)), j % 2 == 0 ? pair : pair >> 16);
    }
  }
  // The chunk's own sum of keys, features by turns: lanes of four have columns 0, 1; 2, 3; and then the turns'.
  __device__ __forceinline__ void begin_sum(int stage, float (&sums)[2][4]) {
    const std::uint64_t turns = wgmma::descriptor(base + L::key_tile(stage, 0) + kTile);
    wgmma::fence();
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      const std::uint64_t keys = wgmma::descriptor(base + L::key_tile(stage, block));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        wgmma::multiply_shared(sums[block], wgmma::step_along_rows(keys, k),
                               wgmma::step_along_columns(turns, L::kKeyRows, k), k > 0);
      }
    }
    wgmma::commit();
  }
  __device__ __forceinline__ void add_to_sum(Sum& sum, const float (&sums)[2][4]) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const float now = t % 2 == 0 ? sums[0][2 * i + part] : sums[1][2 * i + part];
        sum.of[i][part] = chunk_decay * sum.of[i][part] + now;
      }
  }

  __device__ __forceinline__ void store_rows(std::uint32_t tile, int k, const A& x) {
    const std::uint32_t row = tile + (warp * 16 + (lane & 15)) * 128;
    store_matrices(row + ((((lane >> 4) ^ (lane & 7)) * 16) ^ (k * 32)), x.r[0], x.r[1], x.r[2], x.r[3]);
  }

  // Step `step` of the queries, and its features, for the scores, and over q with both parts of their turns.
  __device__ __forceinline__ void load_queries(A& x, int stage, int step) {
    const std::uint32_t row = base + L::query_tile(stage, 0, step / 4) + (warp * 16 + (lane & 15)) * 128;
    load_matrices(x.r, row + ((((lane >> 4) ^ (lane & 7)) * 16) ^ (step % 4 * 32)));
  }
  __device__ __forceinline__ void turn_queries(A& x, int stage, int step, const std::uint32_t (&turns)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) x.r[i] = relu_pair(x.r[i]);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const std::uint32_t a = turns[2 * part], b = turns[2 * part + 1];
      store_rows(
          base + L::query_tile(stage, part, step / 4), step % 4,
          {{multiply_pair(x.r[0], a), multiply_pair(x.r[1], b), multiply_pair(x.r[2], a), multiply_pair(x.r[3], b)}});
    }
  }

  // Scores times the table of distances; leaves the sums of the rows' weights, as they were rounded.
  __device__ __forceinline__ void weigh_scores(int stage, float (&scores)[9][4], float (&sums)[4]) {
    const std::uint32_t distances =
        base + L::kDistances + ((g % 2 == 0 ? 0 : kSecondDistances - 1) + kChunk - warp * 16 - g + 2 * t) * 4;
    float2 weights[9];
#pragma unroll
    for (int n = 0; n < 9; ++n) weights[n] = load_shared_pair(distances + (n - 1) * 32);
    const E::B ones = {{0x3f803f80U, 0x3f803f80U}};
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = 0.0F;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      A result;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float(&c)[4] = scores[2 * k + j];
        const float2 before = weights[2 * k + j], weight = weights[2 * k + j + 1];
        result.r[2 * j] = pack_bf16(c[0] * weight.x, c[1] * weight.y);
        result.r[2 * j + 1] = pack_bf16(c[2] * before.x, c[3] * before.y);
      }
      store_rows(base + L::weight_tile(stage), k, result);
      E::multiply(sums, result, ones);
    }
  }

  // The rows' sums, for the caller and as what results are multiplied with. Turns as they were rounded for the results.
  __device__ __forceinline__ void keep_sums(int stage, int position, const float (&of_earlier)[4],
                                            const float (&of_chunk)[4], const std::uint32_t (&turns)[4]) {
    float x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float factor = low_of(t == 0 ? turns[i] : turns[2 + i]);
      x[i] = t < 2 ? factor * (of_earlier[2 * i] + of_earlier[2 * i + 1]) : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) x[i] += __shfl_xor_sync(0xffffffffU, x[i], 1) + of_chunk[2 * i];
    if (t != 0) return;
    const std::uint32_t inverses = base + L::kInverses + stage * kChunk * 4 + (warp * 16 + g) * 4;
    const int token = position + warp * 16 + g;
    const std::int64_t stride = static_cast<int>(p.denominator_time_stride);
    float* const to = denominators + token * stride;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float inverse = p.normalised ? __fdividef(1.0F, fmaxf(x[i], p.eps)) : 1.0F;
      store_shared_float(inverses + i * 32, inverse);
      if (p.normalised && has(token + 8 * i, row_length)) to[i * 8 * stride] = x[i];
    }
  }

  // `more`: a chunk follows, whose stage is free.
  __device__ __forceinline__ void prepare(int stage, int position, bool more) {
    uint4 keys[2][4];
    A x[8];
#pragma unroll
    for (int block = 0; block < 2; ++block)
#pragma unroll
      for (int i = 0; i < 4; ++i) keys[block][i] = load_shared_16(piece_at(base + L::key_tile(stage, block), i));
#pragma unroll
    for (int step = 0; step < 8; ++step) load_queries(x[step], stage, step);
#pragma unroll
    for (int block = 0; block < 2; ++block)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4& k = keys[block][i];
        store_shared_16(piece_at(base + L::key_tile(stage, block), i),
                        {relu_pair(k.x), relu_pair(k.y), relu_pair(k.z), relu_pair(k.w)});
      }
    wgmma::publish_shared();
#pragma unroll
    for (int step = 0; step < 8; ++step) turn_queries(x[step], stage, step, row_turns);
    sync_warpgroup(0);
    float scores[9][4], sums[2][4], row_sums[4];
    wgmma::fence();
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      const std::uint64_t tile = wgmma::descriptor(base + L::key_tile(stage, step / 4));
      wgmma::multiply<false>(scores, x[step], wgmma::step_along_columns(tile, kChunk, step % 4), step > 0);
    }
    wgmma::commit();
    const int next_stage = stage == L::kStages - 1 ? 0 : stage + 1;
    know_lane();
    if (more) rotate_turn(next_stage);
    wgmma::wait<0>();
    wgmma::settle(scores);
    begin_sum(stage, sums);
    know_lane();
    weigh_scores(stage, scores, row_sums);
    keep_sums(stage, position, scores[8], row_sums, row_turns);
    wgmma::publish_shared();
    arrive(L::full(stage));
    take_row_turns();
    wgmma::wait<0>();
    wgmma::settle(sums);
    if (t < 2) return;
    Sum sum = kept_sum();
    add_to_sum(sum, sums);
    kept_sum() = sum;
    publish_sum(next_stage, sum);
  }

  // The sum of all keys before the segment, both its parts from `from` on; null: none.
  __device__ __forceinline__ void start_sum(const float* from) {
    Sum sum;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int f = summed_feature(i);
        sum.of[i][part] = from != nullptr && f < p.dim ? from[part * p.dim + f] : 0.0F;
      }
    for (int stage = 0; stage < L::kStages; ++stage) {
      const int piece = threadIdx.x % 128 * 16;  // of the eight rows of both tiles
      store_shared_16(base + L::key_tile(stage, piece / 1024) + kTile + piece % 1024, {0U, 0U, 0U, 0U});
    }
    sync_warpgroup();
    if (t < 2) return;
    kept_sum() = sum;
    publish_sum(0, sum);
  }

  // The same from memory.
  __device__ __forceinline__ const float* initial_sum() const {
    const float* slot = initial_slot();
    return slot == nullptr ? nullptr : slot + 2 * p.dim * p.value_dim;
  }

  // `find_sum` tells where the sum before the segment is, when first chunks are under way.
  template <class FindSum>
  __device__ __forceinline__ void run(FindSum find_sum) {
    locate<false, true>();
    reversed = false;
    const auto [begin, end, last_segment] = span();
    if (threadIdx.x % 128 == 0) {
      const auto of_head = [&](const TileSource& source, int first) {
        return static_cast<const Io*>(source.data) + batch * source.batch_stride + head * source.head_stride +
               first * static_cast<std::int64_t>(source.time_stride);
      };
      *reinterpret_cast<Rows*>(shared + L::kRows) = {of_head(w.q, q_begin), of_head(w.k, k_begin),
                                                     of_head(w.v, k_begin)};
    }
    denominators = p.normalised ? p.denominator + denominator_at(0) : nullptr;
    sync_warpgroup();
    for (int i = 0; i < L::kStages - 1; ++i) {
      if (begin + i * kChunk < end) fetch(i, begin + i * kChunk);
      if constexpr (!L::kTma) commit_copies();  // a group in any case: waiting counts groups
    }
    take_angles();
    keep_angles<false>(shared + L::kAngles);
    step = reinterpret_cast<const Angles*>(shared + L::kAngles)[warp].step;
    build_distances(floats(L::kDistances));
    start_sum(find_sum(*this));
    RingTurn<L::kStages> ring;
    for (int position = begin; position < end; position += kChunk) {
      const int stage = ring.stage, before = stage == 0 ? L::kStages - 1 : stage - 1;
      know_lane();
      constexpr int kExactEvery = 64;
      if (position == begin || position + kChunk > frame_length || position / kChunk % kExactEvery == 0) {
        set_turn(stage, position);
      }
      if (warp == 0 && lane == 0) reinterpret_cast<float*>(shared + L::kDecays)[stage] = chunk_decay;
      if constexpr (L::kTma) {
        wait(L::fetched(stage), ring.round);
      } else {
        wait_copies<L::kStages - 2>();
      }
      __syncwarp();  // what other lanes copied or wrote
      prepare(stage, position, position + kChunk < end);
      const unsigned round = ring.round - (stage == 0 ? 1 : 0);
      ring.advance();
      const int next = position + (L::kStages - 1) * kChunk;
      if (next < end) {
        if (position > begin) wait(L::free(before), round);
        fetch(before, next);
      }
      if constexpr (!L::kTma) commit_copies();
    }
  }
};

}  // namespace cosformer::kernels::cuda
