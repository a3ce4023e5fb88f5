// The warpgroups that keep the state of a wide head, 64 of its values each, and make the results.
#pragma once

#include "kernels/cuda/hopper/tma.cuh"
#include "kernels/cuda/hopper/wide/in_registers_layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct InRegistersValues : InRegisters {
  using InRegisters::InRegisters;
  float state[2][2][8][4];  // of each part the two blocks of 64 features: rows are values
  int own;                  // block of 64 values
  bool writes;              // this thread's columns exist

  // From a slot, where features lie value_dim apart: eight lanes read a whole sector. Dims are multiples of eight.
  __device__ __forceinline__ void load_state(const float* from) {
    const int first = own * 64 + warp * 16 + g;  // of this lane's two values
    const bool has[2] = {from != nullptr && first < p.value_dim, from != nullptr && first + 8 < p.value_dim};
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const float* at = from + (part * p.dim + block * 64 + 2 * t) * p.value_dim + first;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          const bool inside = block * 64 + n * 8 < p.dim;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            state[part][block][n][i] = inside && has[i / 2] ? at[i % 2 * p.value_dim + i / 2 * 8] : 0.0F;
          }
          at += 8 * p.value_dim;
        }
      }
  }

  // Step k of a block of the state as an operand.
  __device__ __forceinline__ void pack(A& a, float (&block)[8][4], int k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&c)[4] = block[2 * k + i / 2];
      float x = c[i % 2 * 2], y = c[i % 2 * 2 + 1];
      hold(x, y);  // not before this: registers
      a.r[i] = pack_bf16(x, y);
    }
  }
  // The keys' cosines or sines for step k, and values times them.
  __device__ __forceinline__ uint2 load_turns(std::uint32_t turns, int k) {
    return load_shared_8(turns + t * 32 + k * 8);
  }
  __device__ __forceinline__ void turn_values(A& a, const A& values, uint2 turns) {
#pragma unroll
    for (int i = 0; i < 4; ++i) a.r[i] = multiply_pair(values.r[i], i < 2 ? turns.x : turns.y);
  }

  // out += a·tileᵀ, where the tile has a row for each token.
  __device__ __forceinline__ void multiply_rows(float (&out)[8][4], const A& a, int tile, int k, bool add) {
    wgmma::fence();
    wgmma::multiply<false>(out, a, wgmma::step_along_columns(wgmma::descriptor(base + tile), kChunk, k), add);
    wgmma::commit();
  }
  // A part of the state += values·φ(k).
  __device__ __forceinline__ void update(float (&part)[2][8][4], const A& values, int stage, int k) {
    wgmma::fence();
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      const std::uint64_t keys = wgmma::descriptor(base + L::key_tile(stage, block));
      wgmma::multiply<true>(part[block], values, wgmma::step_along_rows(keys, k), true);
    }
    wgmma::commit();
  }
  __device__ __forceinline__ void decay(float (&part)[2][8][4], int stage) {
    if (p.log_decay == nullptr) return;
    const float factor = reinterpret_cast<const float*>(shared + L::kDecays)[stage];
    scale_block(part[0], factor);
    scale_block(part[1], factor);
  }

  // What the results of tokens 8n + 2t and the next are multiplied with.
  __device__ __forceinline__ float2 load_inverses(int stage, int n) const {
    return load_shared_pair(base + L::kInverses + stage * kChunk * 4 + n * 32 + t * 8);
  }
  // Results go where this warp alone has read values, a row for each token. `next`: the first inverses, which take long
  // to come.
  __device__ __forceinline__ void stage_results(float (&out)[8][4], float2 (&next)[2], int stage) {
    const std::uint32_t row = base + L::value_tile(stage, own) + ((lane & 7) + (lane >> 4) * 8) * 128;
    const std::uint32_t at = row + ((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) * 16;
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      const float2 first = next[0], second = next[1];
      if (n < 6) {
        next[0] = load_inverses(stage, n + 2);
        next[1] = load_inverses(stage, n + 3);
      }
      store_matrices_transposed(at + n * 1024, pack_bf16(out[n][0] * first.x, out[n][1] * first.y),
                                pack_bf16(out[n][2] * first.x, out[n][3] * first.y),
                                pack_bf16(out[n + 1][0] * second.x, out[n + 1][1] * second.y),
                                pack_bf16(out[n + 1][2] * second.x, out[n + 1][3] * second.y));
    }
  }

  __device__ __forceinline__ void settle_state() {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      wgmma::settle(state[part][0]);
      wgmma::settle(state[part][1]);
    }
  }

  // Whole chunks of results leave by TMA, for which one thread asks.
  __device__ __forceinline__ bool stores() const {
    return warp == 0 && lane == 0;
  }

  // One chunk. Operands take turns in sets of registers: one is made while products with the others are under way. With
  // more of them than these the compiler would wait for each product.
  __device__ __forceinline__ void work(int stage, Io* to, int position) {
    wgmma::wait<0>();
    settle_state();  // the compiler waits here, rather than where the first products are under way
    float out[8][4];
    constexpr int kSets = 3, kRowSteps = 16;
    A sets[kSets];
    const std::uint32_t values = base + L::value_tile(stage, own);
#pragma unroll
    for (int step = 0; step < kRowSteps; ++step) {
      const int part = step / 8, k = step % 8;
      if (step >= kSets) wgmma::wait<kSets - 1>();
      pack(sets[step % kSets], state[part][k / 4], k % 4);
      multiply_rows(out, sets[step % kSets], L::query_tile(stage, part, k / 4), k % 4, step > 0);
    }
    decay(state[0], stage);
    decay(state[1], stage);
    // Of every 16 tokens their values' share of the results, of the state with cosines and of that with sines: values
    // come from shared memory once for all three, a step ahead.
    wgmma::wait<kSets - 1>();
    const auto set = [&](int step) -> A& { return sets[(kRowSteps + step) % kSets]; };
    load_transposed(set(0), values, 0);
    uint2 turns[2], next_turns[2];
    const auto load_both = [&](int k) {
      next_turns[0] = load_turns(base + L::turns(stage), k);
      next_turns[1] = load_turns(base + L::turns(stage) + 128, k);
    };
    load_both(0);
#pragma unroll
    for (int step = 0; step < 12; ++step) {
      const int k = step / 3, part = step % 3 - 1;
      A& a = set(step);
      wgmma::wait<1>();
      if (part < 0) {
        turns[0] = next_turns[0];
        turns[1] = next_turns[1];
        multiply_rows(out, a, L::weight_tile(stage), k, true);
      } else {
        turn_values(a, set(step - part - 1), turns[part]);
        if (part == 1 && k < 3) {
          load_transposed(set(step + 1), values, k + 1);
          load_both(k + 1);
        }
        update(state[part], a, stage, k);
      }
    }
    float2 inverses[2] = {load_inverses(stage, 0), load_inverses(stage, 1)};
    wgmma::wait<2>();
    wgmma::settle(out);
    stage_results(out, inverses, stage);
    if constexpr (L::kTma) wgmma::publish_shared();
    sync_warpgroup(1 + own);
    const bool in_tile = L::kTma && position + kChunk <= row_length;
    if (in_tile) {
      if (stores()) tma::store(w.out_map, position, head, batch, values, own * 64);
    } else {
      const std::int64_t stride = w.first.time_stride;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 x = load_shared_16(piece_at(values, i));
        if (writes && has(position + fetch_row + 4 * i, row_length)) store_global_16(to + i * 4 * stride, x);
      }
    }
    wgmma::wait<0>();
    settle_state();
    if (in_tile && stores()) tma::await_stores_read();
    arrive(L::free(stage));
  }

  // `before_state` comes before what the segment starts from is read.
  template <class BeforeState>
  __device__ __forceinline__ void run(int block, BeforeState before_state) {
    own = block;
    locate<false, true>();
    reversed = false;
    know_lane();
    const auto [begin, end, last_segment] = span();
    before_state();
    load_state(initial_slot());
    const int column = own * 64 + piece * 8;
    Io* to = static_cast<Io*>(w.first.data) + batch * w.first.batch_stride + head * w.first.head_stride +
             (q_begin + begin + fetch_row) * static_cast<std::int64_t>(w.first.time_stride) + column;
    writes = column < w.first.columns;
    RingTurn<L::kStages> at;
    for (int position = begin; position < end; position += kChunk) {
      wait(L::full(at.stage), at.round);
      work(at.stage, to, position);
      to += static_cast<std::int64_t>(w.first.time_stride) * kChunk;
      at.advance();
    }
  }
};

}  // namespace cosformer::kernels::cuda
