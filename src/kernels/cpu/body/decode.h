// The decode step: a few new tokens per sequence on a carried state, which is read and written once.
//
// Bound by memory: per row of the state one load, one store and a handful of multiply-additions.
#pragma once

#include "kernels/cpu/body/state.h"

namespace cosformer::kernels::cpu {
namespace {

constexpr Index kMostDecodeTokens = 8;

// Whether the state can be streamed in place: few tokens, a state on both sides, and rows of whole vectors.
template <class T>
bool is_decode_step(const HeadContext& head) {
  const AttentionProblem& problem = head.problem;
  return problem.causal && problem.state_kv_in != nullptr && problem.state_kv_out != nullptr &&
         head.grid.query_length == head.grid.key_length && head.grid.key_length > 0 &&
         head.grid.key_length <= kMostDecodeTokens && head.problem.value_dim % kLanes<T> == 0;
}

// Columns [e, e + kVectors vectors): adds query·kv of the incoming state to sum, and writes decay·kv + keyᵀ·value.
template <class T, int kTokens, int kVectors>
void stream_columns(const HeadContext& head, const T* query, const T* key, const T* value, T decay, Index e, T* sum,
                    const T* from, T* to) {
  const Index width = head.problem.value_dim, dim = head.shape.dim;
  Vector<T> sums[kTokens][kVectors] = {}, values[kTokens][kVectors];
  COSFORMER_UNROLL for (int t = 0; t < kTokens; ++t) {
    COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
      values[t][v] = load(value + t * head.shape.value_dim + e + v * kLanes<T>);
    }
  }
  for (Index part = 0; part < 2; ++part) {
    for (Index d = 0; d < head.problem.dim; ++d) {
      const Index row = (part * head.problem.dim + d) * width + e, feature = part * dim + d;
      Vector<T> next[kVectors];
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) next[v] = load(from + row + v * kLanes<T>);
      COSFORMER_UNROLL for (int t = 0; t < kTokens; ++t) {
        const T factor = query[t * 2 * dim + feature];
        COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) sums[t][v] += next[v] * factor;
      }
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) next[v] *= decay;
      COSFORMER_UNROLL for (int t = 0; t < kTokens; ++t) {
        const T factor = key[t * 2 * dim + feature];
        COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) next[v] += values[t][v] * factor;
      }
      COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) store(to + row + v * kLanes<T>, next[v]);
    }
  }
  COSFORMER_UNROLL for (int t = 0; t < kTokens; ++t) {
    COSFORMER_UNROLL for (int v = 0; v < kVectors; ++v) {
      store(sum + t * head.shape.value_dim + e + v * kLanes<T>, sums[t][v]);
    }
  }
}

// `tokens` is rounded up to 1, 2, 4 or 8; rows past the real ones hold zeros.
template <class T, int kTokens>
void stream_tokens(const HeadContext& head, const T* query, const T* key, const T* value, T decay, T* sum,
                   const T* from, T* to) {
  constexpr int kVectors = kTokens <= 2 ? 4 : 1;
  Index e = 0;
  for (; e + kVectors * kLanes<T> <= head.problem.value_dim; e += kVectors * kLanes<T>) {
    stream_columns<T, kTokens, kVectors>(head, query, key, value, decay, e, sum, from, to);
  }
  for (; e < head.problem.value_dim; e += kLanes<T>) {
    stream_columns<T, kTokens, 1>(head, query, key, value, decay, e, sum, from, to);
  }
}

// sum = query·kv of the incoming state, state_out = decay·state_in + keyᵀ·value, and the same with z.
template <class T>
void stream_state(const HeadContext& head, Index tokens, T* query, T* key, T* value, T decay, ExternalState<T> from,
                  ExternalState<T> to, T* sum, T* row_sum) {
  const Index dim = head.shape.dim, n = head.problem.dim;
  Index rounded = 1;
  while (rounded < tokens) rounded *= 2;
  fill_zero(query + tokens * 2 * dim, (rounded - tokens) * 2 * dim);
  fill_zero(key + tokens * 2 * dim, (rounded - tokens) * 2 * dim);
  fill_zero(value + tokens * head.shape.value_dim, (rounded - tokens) * head.shape.value_dim);
  switch (rounded) {
    case 1: stream_tokens<T, 1>(head, query, key, value, decay, sum, from.kv, to.kv); break;
    case 2: stream_tokens<T, 2>(head, query, key, value, decay, sum, from.kv, to.kv); break;
    case 4: stream_tokens<T, 4>(head, query, key, value, decay, sum, from.kv, to.kv); break;
    default: stream_tokens<T, 8>(head, query, key, value, decay, sum, from.kv, to.kv); break;
  }
  for (Index t = 0; t < tokens; ++t) {
    T total = 0;
    for (Index d = 0; d < n; ++d) {
      total += query[t * 2 * dim + d] * from.z[d] + query[t * 2 * dim + dim + d] * from.z[n + d];
    }
    row_sum[t] = total;
  }
  for (Index part = 0; part < 2; ++part) {
    for (Index d = 0; d < n; ++d) {
      T z = from.z[part * n + d] * decay;
      for (Index t = 0; t < tokens; ++t) z += key[t * 2 * dim + part * dim + d];
      to.z[part * n + d] = z;
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
