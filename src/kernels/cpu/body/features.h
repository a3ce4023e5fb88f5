// The feature map φ and its derivative, and the loading of queries, keys and values of a chunk.
#pragma once

#include "kernels/cpu/body/rows.h"
#include "kernels/cpu/grid.h"
#include "kernels/cpu/scratch.h"

namespace cosformer::kernels::cpu {
namespace {

COSFORMER_INLINE float exponential(float x) {
  return ::expf(x);
}
COSFORMER_INLINE double exponential(double x) {
  return ::exp(x);
}

// In place. Written so that NaN stays NaN.
template <class T>
void apply_feature_map(FeatureMap map, T* x, Index n) {
  switch (map) {
    case FeatureMap::kRelu:
      for (Index i = 0; i < n; ++i) x[i] = x[i] < 0 ? T(0) : x[i];
      break;
    case FeatureMap::kElu1:
      for (Index i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] + 1 : exponential(x[i]);
      break;
    case FeatureMap::kLeakyRelu:
      for (Index i = 0; i < n; ++i) x[i] = x[i] < 0 ? T(kLeakyReluSlope) * x[i] : x[i];
      break;
    case FeatureMap::kSilu:
      for (Index i = 0; i < n; ++i) x[i] = x[i] / (1 + exponential(-x[i]));
      break;
    case FeatureMap::kIdentity: break;
  }
}

// gradient *= φ'(x)
template <class T>
void apply_feature_map_bwd(FeatureMap map, const T* x, T* gradient, Index n) {
  switch (map) {
    case FeatureMap::kRelu:
      for (Index i = 0; i < n; ++i) gradient[i] = x[i] > 0 ? gradient[i] : T(0);
      break;
    case FeatureMap::kElu1:
      for (Index i = 0; i < n; ++i) gradient[i] *= x[i] > 0 ? T(1) : exponential(x[i]);
      break;
    case FeatureMap::kLeakyRelu:
      for (Index i = 0; i < n; ++i) gradient[i] *= x[i] > 0 ? T(1) : T(kLeakyReluSlope);
      break;
    case FeatureMap::kSilu:
      for (Index i = 0; i < n; ++i) {
        const T sigmoid = 1 / (1 + exponential(-x[i]));
        gradient[i] *= sigmoid * (1 + x[i] * (1 - sigmoid));
      }
      break;
    case FeatureMap::kIdentity: break;
  }
}

// One head of one sequence, as the loops over chunks see it.
struct HeadContext {
  const AttentionProblem& problem;
  const Sequence& sequence;
  Index sequence_index, head;
  PaddedShape shape;
  ChunkGrid grid;
  double theta, log_decay;
};

COSFORMER_INLINE bool key_present(const HeadContext& head, Index key) {
  if (head.problem.key_mask == nullptr) return true;
  return head.problem.key_mask[head.sequence.batch * head.problem.mask_batch_stride +
                               (head.sequence.k_begin + key) * head.problem.mask_time_stride];
}

// φ(q) of the chunk, [queries, dim]
template <class T>
void load_queries(const HeadContext& head, const Chunk& chunk, T* phi_q) {
  const AttentionProblem& problem = head.problem;
  for (Index t = 0; t < chunk.queries; ++t) {
    T* row = phi_q + t * head.shape.dim;
    load_row(problem.dtype,
             row_at(problem.q, problem.dtype, head.sequence.batch, head.sequence.q_begin + chunk.begin + t, head.head),
             problem.dim, head.shape.dim, row);
    apply_feature_map(problem.feature_map, row, problem.dim);
  }
}

template <class T>
void load_keys(const HeadContext& head, const Chunk& chunk, T* phi_k) {
  const AttentionProblem& problem = head.problem;
  for (Index t = 0; t < chunk.keys; ++t) {
    T* row = phi_k + t * head.shape.dim;
    if (!key_present(head, chunk.begin + t)) {
      fill_zero(row, head.shape.dim);
      continue;
    }
    load_row(problem.dtype,
             row_at(problem.k, problem.dtype, head.sequence.batch, head.sequence.k_begin + chunk.begin + t, head.head),
             problem.dim, head.shape.dim, row);
    apply_feature_map(problem.feature_map, row, problem.dim);
  }
}

// An absent key's value is read as zero too: 0·inf must not reach the sums.
template <class T>
void load_values(const HeadContext& head, const Chunk& chunk, T* value) {
  const AttentionProblem& problem = head.problem;
  for (Index t = 0; t < chunk.keys; ++t) {
    T* row = value + t * head.shape.value_dim;
    if (!key_present(head, chunk.begin + t)) {
      fill_zero(row, head.shape.value_dim);
      continue;
    }
    load_row(problem.dtype,
             row_at(problem.v, problem.dtype, head.sequence.batch, head.sequence.k_begin + chunk.begin + t, head.head),
             problem.value_dim, head.shape.value_dim, row);
  }
}

// [rows, 2·dim] = φ·(cos, sin)
template <class T>
void rotate_features(const T* phi, const T* cosines, const T* sines, Index rows, Index dim, T* features) {
  for (Index t = 0; t < rows; ++t) {
    const T* from = phi + t * dim;
    T* to = features + t * 2 * dim;
    for (Index i = 0; i < dim; i += kLanes<T>) {
      const Vector<T> x = load(from + i);
      store(to + i, x * cosines[t]);
      store(to + dim + i, x * sines[t]);
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
