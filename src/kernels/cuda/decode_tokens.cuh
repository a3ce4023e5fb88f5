// What decoding does with the new tokens themselves, before and after a head's state goes by: features, similarities of
// the tokens among each other, denominators, the sum of the keys, and in the end the results.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/numbers.cuh"

namespace cosformer::kernels::cuda {

constexpr int kDecodeThreads = 256;  // that work on a head together

// A block's shared memory.
template <int kTokens>
struct DecodeShared {
  float4 features[kTokens][kMaxHeadDim];  // k cos, k sin, q cos, q sin; in the end the threads' sums
  float values[kTokens][kMaxHeadDim];
  float2 keys[kMaxHeadDim];  // their sum before the tokens
  Turn turns[kTokens];
  float powers[kTokens + 1];             // of the decay
  float similarities[kTokens][kTokens];  // of query and earlier key, decayed
  float denominators[kTokens];
};

// A thread's adjacent value columns: what the tokens have read of the state so far, and the tokens' values, decayed to
// what the last one's state has of them.
template <int kTokens, int kVector>
struct DecodeColumns {
  float sums[kTokens][kVector] = {}, added[kTokens][kVector] = {};
};

// Numbers of the state beside each other.
template <int kVector>
struct StatePiece {
  float x[kVector];
};

// Tokens up to kTokens that are not there have features and values of zero.
template <class Io, int kTokens>
class DecodeTokens {
 public:
  __device__ __forceinline__ DecodeTokens(const Problem& problem, DecodeShared<kTokens>& shared, std::int64_t index)
      : p(problem),
        s(shared),
        head_index(index),
        sequence(index / problem.heads),
        head(static_cast<int>(index % problem.heads)),
        dim(static_cast<int>(problem.dim)),
        value_dim(static_cast<int>(problem.value_dim)),
        tokens(kTokens == 1 ? 1 : static_cast<int>(problem.q_length)) {}

  // Asks for the tokens, which may take a while.
  __device__ __forceinline__ void load() {
    const bool exists = own_token < tokens;
    if (exists) {
      const bool seen =
          p.key_mask == nullptr || p.key_mask[sequence * p.mask_batch_stride + own_token * p.mask_time_stride];
      const Io *q = row(p.q), *k = row(p.k), *v = row(p.v);
#pragma unroll
      for (int n = 0; n < kTokens; ++n) {
        const int d = own_first + n * kStep;
        if (d >= dim) break;
        own_k[n] = seen ? map_forward(p.feature_map, to_float(k[d])) : 0.0F;
        own_q[n] = map_forward(p.feature_map, to_float(q[d]));
      }
      for (int c = own_first; c < value_dim; c += kStep) s.values[own_token][c] = seen ? to_float(v[c]) : 0.0F;
    }
    if (thread < dim && p.state_z_in != nullptr) {
      const float* in = p.state_z_in + head_index * 2 * dim + thread;
      z = {in[0], in[dim]};
    }
    s.keys[thread] = z;
    if (thread < kTokens) {
      const double theta = p.theta_per_head == nullptr ? p.theta : static_cast<double>(p.theta_per_head[head]);
      s.turns[thread] = turn_of(theta, reduced_position(p.position, p.period, sequence) + thread);
    }
    if (warp == 1 && lane <= tokens) s.powers[lane] = decay_of(p.log_decay == nullptr ? 0.0F : p.log_decay[head], lane);
  }

  // What they make of it can be read by all threads afterwards.
  __device__ __forceinline__ void prepare() {
    meet();
    const Turn turn = s.turns[own_token];
#pragma unroll
    for (int n = 0; n < kTokens; ++n) {
      const int d = own_first + n * kStep;
      if (d >= dim) break;
      s.features[own_token][d] =
          make_float4(own_k[n] * turn.cosine, own_k[n] * turn.sine, own_q[n] * turn.cosine, own_q[n] * turn.sine);
    }
    meet();
    if (warp < tokens) meet_tokens();
    carried = s.powers[tokens];
    if (thread < dim && p.state_z_out != nullptr) leave_keys();
  }

  template <int kVector>
  __device__ __forceinline__ void begin(DecodeColumns<kTokens, kVector>& columns, int column) const {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens) break;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        columns.added[token][i] = s.values[token][column + i] * s.powers[tokens - 1 - token];
      }
    }
  }

  // All tokens read what the state has for feature d, cosine and sine part; it becomes what it is after them.
  template <int kVector>
  __device__ __forceinline__ void pass(DecodeColumns<kTokens, kVector>& columns, int d,
                                       StatePiece<kVector> (&state)[2]) const {
    StatePiece<kVector> next[2];
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int i = 0; i < kVector; ++i) next[part].x[i] = state[part].x[i] * carried;
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const float4 f = s.features[token][d];
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        float& sum = columns.sums[token][i];
        sum = fmaf(f.z, state[0].x[i], fmaf(f.w, state[1].x[i], sum));
        next[0].x[i] = fmaf(f.x, columns.added[token][i], next[0].x[i]);
        next[1].x[i] = fmaf(f.y, columns.added[token][i], next[1].x[i]);
      }
    }
    state[0] = next[0];
    state[1] = next[1];
  }

  // Adds up what `groups` threads have of a column, and writes the results. Threads of no group have nothing.
  template <int kVector>
  __device__ __forceinline__ void finish(const DecodeColumns<kTokens, kVector>& columns, int column, int group,
                                         int groups) {
    static_assert(sizeof(s.features) >= kTokens * kDecodeThreads * kVector * sizeof(float));
    meet();  // features have been read
    float* const partial = reinterpret_cast<float*>(s.features);
    if (group < groups) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token >= tokens) break;
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          partial[(token * groups + group) * value_dim + column + i] = columns.sums[token][i];
        }
      }
    }
    meet();
    if (own_token >= tokens) return;
    Io* const out = row(p.out);
    const float size =
        p.normalizer == Normalizer::kSum ? fmaxf(s.denominators[own_token], static_cast<float>(p.eps)) : 1.0F;
    for (int c = own_first; c < value_dim; c += kStep) {
      float sum = 0.0F;
      for (int r = 0; r < groups; ++r) sum += partial[(own_token * groups + r) * value_dim + c];
      sum *= s.powers[own_token + 1];
      for (int j = 0; j <= own_token; ++j) sum += s.similarities[own_token][j] * s.values[j][c];
      out[c] = from_float<Io>(sum / size);
    }
  }

  // Of the kDecodeThreads alone: a block may have others.
  __device__ __forceinline__ static void meet() {
    asm volatile("bar.sync 1, %0;" ::"n"(kDecodeThreads) : "memory");
  }

 private:
  static constexpr int kWarps = kDecodeThreads / 32 / kTokens;  // to a token
  static constexpr int kStep = kWarps * 32;
  static_assert(kWarps * kTokens * 32 == kDecodeThreads && kDecodeThreads >= kMaxHeadDim);

  template <class AnyView>
  __device__ __forceinline__ auto row(const AnyView& view) const {
    const std::int64_t at = sequence * view.batch_stride + own_token * view.time_stride + head * view.head_stride;
    if constexpr (std::is_const_v<std::remove_pointer_t<decltype(view.data)>>) {
      return static_cast<const Io*>(view.data) + at;
    } else {
      return static_cast<Io*>(view.data) + at;
    }
  }

  // Tokens see each other by the definition, a warp each.
  __device__ __forceinline__ void meet_tokens() {
    float of_keys = 0.0F, of_key[kTokens] = {};
    for (int d = lane; d < dim; d += 32) {
      const float4 own = s.features[warp][d];
      const float2 before = s.keys[d];
      of_keys += own.z * before.x + own.w * before.y;
#pragma unroll
      for (int j = 0; j < kTokens; ++j) {
        if (j <= warp) of_key[j] += own.z * s.features[j][d].x + own.w * s.features[j][d].y;
      }
    }
    float total = sum_over_warp(of_keys) * s.powers[warp + 1];
#pragma unroll
    for (int j = 0; j < kTokens; ++j) {
      if (j > warp) break;
      const float similarity = sum_over_warp(of_key[j]) * s.powers[warp - j];
      total += similarity;
      if (lane == 0) s.similarities[warp][j] = similarity;
    }
    if (lane != 0) return;
    s.denominators[warp] = total;
    if (p.denominator.data == nullptr) return;
    const View& to = p.denominator;
    static_cast<float*>(to.data)[sequence * to.batch_stride + warp * to.time_stride + head * to.head_stride] = total;
  }

  __device__ __forceinline__ void leave_keys() {
    z = {z.x * carried, z.y * carried};
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens) break;
      z.x += s.features[token][thread].x * s.powers[tokens - 1 - token];
      z.y += s.features[token][thread].y * s.powers[tokens - 1 - token];
    }
    float* out = p.state_z_out + head_index * 2 * dim + thread;
    out[0] = z.x;
    out[dim] = z.y;
  }

  const Problem& p;
  DecodeShared<kTokens>& s;
  const std::int64_t head_index, sequence;
  const int head, dim, value_dim, tokens;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  // The token whose numbers this warp brings and writes, and where its lanes' share of them begins.
  const int own_token = warp / kWarps, own_first = warp % kWarps * 32 + lane;
  float own_k[kTokens] = {}, own_q[kTokens] = {};  // until the tokens' angles are known
  float2 z = {0.0F, 0.0F};
  float carried = 0.0F;
};

}  // namespace cosformer::kernels::cuda
