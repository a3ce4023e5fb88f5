// What decoding does with the new tokens themselves, before and after a head's state goes by: features, similarities of
// the tokens among each other, denominators, the sum of the keys, and in the end the results.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/numbers.cuh"

namespace cosformer::kernels::cuda {

constexpr int kDecodeThreads = 256;  // of a block, which has one head

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
      : p_(problem),
        s_(shared),
        head_index_(index),
        sequence_(index / problem.heads),
        head_(static_cast<int>(index % problem.heads)),
        dim_(static_cast<int>(problem.dim)),
        value_dim_(static_cast<int>(problem.value_dim)),
        tokens_(kTokens == 1 ? 1 : static_cast<int>(problem.q_length)) {}

  // Asks for the tokens, which may take a while.
  __device__ __forceinline__ void load() {
    if (own_token_ < tokens_) {
      const bool seen =
          p_.key_mask == nullptr || p_.key_mask[sequence_ * p_.mask_batch_stride + own_token_ * p_.mask_time_stride];
      const Io *q = own_row(p_.q), *k = own_row(p_.k), *v = own_row(p_.v);
#pragma unroll
      for (int n = 0; n < kTokens; ++n) {
        const int d = own_first_ + n * kStep;
        if (d >= dim_) break;
        own_k_[n] = seen ? map_forward(p_.feature_map, to_float(k[d])) : 0.0F;
        own_q_[n] = map_forward(p_.feature_map, to_float(q[d]));
      }
      for (int c = own_first_; c < value_dim_; c += kStep) s_.values[own_token_][c] = seen ? to_float(v[c]) : 0.0F;
    }
    if (thread_ < dim_ && p_.state_z_in != nullptr) {
      const float* in = p_.state_z_in + head_index_ * 2 * dim_ + thread_;
      z_ = {in[0], in[dim_]};
    }
    s_.keys[thread_] = z_;
    if (thread_ < kTokens) {
      const double theta = p_.theta_per_head == nullptr ? p_.theta : static_cast<double>(p_.theta_per_head[head_]);
      s_.turns[thread_] = turn_of(theta, reduced_position(p_.position, p_.period, sequence_) + thread_);
    }
    if (warp_ == 1 && lane_ <= tokens_)
      s_.powers[lane_] = decay_of(p_.log_decay == nullptr ? 0.0F : p_.log_decay[head_], lane_);
  }

  // Features can be read by all threads afterwards; what tokens are to each other waits for finish.
  __device__ __forceinline__ void prepare() {
    __syncthreads();
    const Turn turn = s_.turns[own_token_];
#pragma unroll
    for (int n = 0; n < kTokens; ++n) {
      const int d = own_first_ + n * kStep;
      if (d >= dim_) break;
      s_.features[own_token_][d] =
          make_float4(own_k_[n] * turn.cosine, own_k_[n] * turn.sine, own_q_[n] * turn.cosine, own_q_[n] * turn.sine);
    }
    __syncthreads();
    if (warp_ < tokens_) score_tokens();
    carried_ = s_.powers[tokens_];
    if (thread_ < dim_ && p_.state_z_out != nullptr) leave_keys();
  }

  template <int kVector>
  __device__ __forceinline__ void begin(DecodeColumns<kTokens, kVector>& columns, int column) const {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens_) break;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        columns.added[token][i] = s_.values[token][column + i] * s_.powers[tokens_ - 1 - token];
      }
    }
  }

  // All tokens read what the state has for feature d, cosine and sine part; it becomes what it is after them.
  template <int kVector>
  __device__ __forceinline__ void go_past(DecodeColumns<kTokens, kVector>& columns, int d,
                                          StatePiece<kVector> (&state)[2]) const {
    StatePiece<kVector> next[2];
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int i = 0; i < kVector; ++i) next[part].x[i] = state[part].x[i] * carried_;
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const float4 f = s_.features[token][d];
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
    static_assert(sizeof(s_.features) >= kTokens * kDecodeThreads * kVector * sizeof(float));
    __syncthreads();  // features have been read
    float* const partial = reinterpret_cast<float*>(s_.features);
    if (group < groups) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token >= tokens_) break;
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          partial[(token * groups + group) * value_dim_ + column + i] = columns.sums[token][i];
        }
      }
    }
    __syncthreads();
    if (own_token_ >= tokens_) return;
    Io* const out = static_cast<Io*>(p_.out.data) + at(p_.out, own_token_);
    const float size =
        p_.normalizer == Normalizer::kSum ? fmaxf(s_.denominators[own_token_], static_cast<float>(p_.eps)) : 1.0F;
    for (int c = own_first_; c < value_dim_; c += kStep) {
      float sum = 0.0F;
      for (int r = 0; r < groups; ++r) sum += partial[(own_token_ * groups + r) * value_dim_ + c];
      sum *= s_.powers[own_token_ + 1];
      for (int j = 0; j <= own_token_; ++j) sum += s_.similarities[own_token_][j] * s_.values[j][c];
      out[c] = from_float<Io>(sum / size);
    }
  }

 private:
  static constexpr int kWarps = kDecodeThreads / 32 / kTokens;  // to a token
  static constexpr int kStep = kWarps * 32;
  static_assert(kWarps * kTokens * 32 == kDecodeThreads && kDecodeThreads >= kMaxHeadDim);

  // Where a token's numbers begin in a view.
  template <class AnyView>
  __device__ __forceinline__ std::int64_t at(const AnyView& view, int token) const {
    return sequence_ * view.batch_stride + token * view.time_stride + head_ * view.head_stride;
  }
  __device__ __forceinline__ const Io* own_row(const ConstView& view) const {
    return static_cast<const Io*>(view.data) + at(view, own_token_);
  }

  // Tokens see each other by the definition, a warp each.
  __device__ __forceinline__ void score_tokens() {
    float of_keys = 0.0F, of_key[kTokens] = {};
    for (int d = lane_; d < dim_; d += 32) {
      const float4 own = s_.features[warp_][d];
      const float2 before = s_.keys[d];
      of_keys += own.z * before.x + own.w * before.y;
#pragma unroll
      for (int j = 0; j < kTokens; ++j) {
        if (j <= warp_) of_key[j] += own.z * s_.features[j][d].x + own.w * s_.features[j][d].y;
      }
    }
    float total = sum_over_warp(of_keys) * s_.powers[warp_ + 1];
#pragma unroll
    for (int j = 0; j < kTokens; ++j) {
      if (j > warp_) break;
      const float similarity = sum_over_warp(of_key[j]) * s_.powers[warp_ - j];
      total += similarity;
      if (lane_ == 0) s_.similarities[warp_][j] = similarity;
    }
    if (lane_ != 0) return;
    s_.denominators[warp_] = total;
    if (p_.denominator.data != nullptr) static_cast<float*>(p_.denominator.data)[at(p_.denominator, warp_)] = total;
  }

  __device__ __forceinline__ void leave_keys() {
    z_ = {z_.x * carried_, z_.y * carried_};
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens_) break;
      z_.x += s_.features[token][thread_].x * s_.powers[tokens_ - 1 - token];
      z_.y += s_.features[token][thread_].y * s_.powers[tokens_ - 1 - token];
    }
    float* out = p_.state_z_out + head_index_ * 2 * dim_ + thread_;
    out[0] = z_.x;
    out[dim_] = z_.y;
  }

  const Problem& p_;
  DecodeShared<kTokens>& s_;
  const std::int64_t head_index_, sequence_;
  const int head_, dim_, value_dim_, tokens_;
  const int thread_ = static_cast<int>(threadIdx.x), lane_ = thread_ % 32, warp_ = thread_ / 32;
  // The token whose numbers this warp brings and writes, and where its lanes' share of them begins.
  const int own_token_ = warp_ / kWarps, own_first_ = warp_ % kWarps * 32 + lane_;
  float own_k_[kTokens] = {}, own_q_[kTokens] = {};  // until the tokens' angles are known
  float2 z_ = {0.0F, 0.0F};
  float carried_ = 0.0F;
};

}  // namespace cosformer::kernels::cuda
