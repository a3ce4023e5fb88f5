// The feature map φ and its derivative, and the loading of queries, keys and values of a chunk.
#pragma once

#include "kernels/cpu/body/exponential.h"
#include "kernels/cpu/body/rows.h"
#include "kernels/cpu/grid.h"
#include "kernels/cpu/scratch.h"

namespace cosformer::kernels::cpu {
namespace {

// Written so that NaN stays NaN.
template <class T>
COSFORMER_INLINE Vector<T> map_features(FeatureMap map, Vector<T> x) {
  const Vector<T> zero = {};
  switch (map) {
    case FeatureMap::kRelu: return x < 0 ? zero : x;
    case FeatureMap::kElu1: return x > 0 ? x + T(1) : exponential(x);
    case FeatureMap::kLeakyRelu: return x < 0 ? x * T(kLeakyReluSlope) : x;
    case FeatureMap::kSilu: return x / (exponential(-x) + T(1));
    case FeatureMap::kIdentity: break;
  }
  return x;
}

// gradient *= φ'(x), from φ(x), and from x where that does not tell.
template <class T>
COSFORMER_INLINE Vector<T> feature_map_bwd(FeatureMap map, Vector<T> phi, Vector<T> gradient) {
  const Vector<T> zero = {}, one = zero + T(1);
  switch (map) {
    case FeatureMap::kRelu: return phi > 0 ? gradient : zero;
    case FeatureMap::kElu1: return gradient * (phi > 1 ? one : phi);
    case FeatureMap::kLeakyRelu: return phi > 0 ? gradient : gradient * T(kLeakyReluSlope);
    case FeatureMap::kSilu:
    case FeatureMap::kIdentity: break;
  }
  return gradient;
}

// Whole vectors.
template <class T>
void silu_bwd(const T* x, T* gradient, Index n) {
  const Vector<T> one = Vector<T>{} + T(1);
  for (Index i = 0; i < n; i += kLanes<T>) {
    const Vector<T> here = load(x + i), sigmoid = one / (exponential(-here) + T(1));
    store(gradient + i, load(gradient + i) * (sigmoid * (here * (one - sigmoid) + T(1))));
  }
}

// One head of one sequence, as the loops over chunks see it.
struct HeadContext {
  const AttentionProblem& problem;
  const Sequence& sequence;
  Index sequence_index, head;
  PaddedShape shape;
  ChunkGrid grid;
  bool streams_results;  // past the caches

  double theta() const { return problem.theta != nullptr ? problem.theta[head] : sequence.theta; }
  double log_decay() const { return problem.log_decay != nullptr ? problem.log_decay[head] : 0.0; }
};

// The heads that go through each chunk together, `count` of them from `first` on.
struct HeadGroup {
  Index first = 0, count = 1;
  bool same_angles = false;  // and the same decay: one set of tables serves them all

  HeadGroup(const HeadContext& head, Index heads)
      : first(head.head),
        count(heads),
        same_angles(head.problem.theta == nullptr && head.problem.log_decay == nullptr) {}

  Index tables_of(Index h) const { return same_angles ? 0 : h; }
  bool needs_tables(const HeadContext& head) const { return head.head == first || !same_angles; }
};

COSFORMER_INLINE bool key_present(const HeadContext& head, Index key) {
  if (head.problem.key_mask == nullptr) return true;
  return head.problem.key_mask[head.sequence.batch * head.problem.mask_batch_stride +
                               (head.sequence.k_begin + key) * head.problem.mask_time_stride];
}

// φ of rows [0, count), and with `features` given also φ·(cos, sin), [count, 2·dim]
template <class T, class Present>
void load_features(const HeadContext& head, const void* from, Index stride, Index count, Present present,
                   const T* cosines, const T* sines, T* phi, T* features) {
  const Index n = head.problem.dim, dim = head.shape.dim;
  const FeatureMap map = head.problem.feature_map;
  with_storage(head.problem.dtype, phi, [&](auto* type) {
    using Storage = typename Pointee<decltype(type)>::Type;
    const Vector<T> zero = {};
    for (Index t = 0; t < count; ++t) {
      const Storage* row = static_cast<const Storage*>(from) + t * stride;
      T *phi_row = phi + t * dim, *to = features == nullptr ? nullptr : features + t * 2 * dim;
      const bool is_present = present(t);
      const T cosine = features == nullptr ? T(0) : cosines[t], sine = features == nullptr ? T(0) : sines[t];
      const auto put = [&](Vector<T> x, Index i) {
        store(phi_row + i, x);
        if (to == nullptr) return;
        store(to + i, x * cosine);
        store(to + dim + i, x * sine);
      };
      if (!is_present) {
        for (Index i = 0; i < dim; i += kLanes<T>) put(zero, i);
      } else if (map == FeatureMap::kRelu) {
        each_vector<T>(row, n, [&](Vector<T> x, Index i) { put(x < 0 ? zero : x, i); });
      } else {
        each_vector<T>(row, n, [&](Vector<T> x, Index i) { put(first_lanes<T>(map_features<T>(map, x), n - i), i); });
      }
    }
  });
}

template <class T>
void load_queries(const HeadContext& head, const Chunk& chunk, const T* cosines, const T* sines, T* phi, T* features) {
  const AttentionProblem& problem = head.problem;
  const void* from =
      row_at(problem.q, problem.dtype, head.sequence.batch, head.sequence.q_begin + chunk.begin, head.head);
  load_features(
      head, from, problem.q.time_stride, chunk.queries, [](Index) { return true; }, cosines, sines, phi, features);
}

template <class T>
void load_keys(const HeadContext& head, const Chunk& chunk, const T* cosines, const T* sines, T* phi, T* features) {
  const AttentionProblem& problem = head.problem;
  const void* from =
      row_at(problem.k, problem.dtype, head.sequence.batch, head.sequence.k_begin + chunk.begin, head.head);
  load_features(
      head, from, problem.k.time_stride, chunk.keys, [&](Index t) { return key_present(head, chunk.begin + t); },
      cosines, sines, phi, features);
}

// An absent key's value is read as zero too: 0·inf must not reach the sums.
template <class T>
void load_values(const HeadContext& head, const Chunk& chunk, T* value) {
  const AttentionProblem& problem = head.problem;
  load_rows(
      problem.dtype,
      row_at(problem.v, problem.dtype, head.sequence.batch, head.sequence.k_begin + chunk.begin, head.head),
      problem.v.time_stride, chunk.keys, problem.value_dim, head.shape.value_dim,
      [&](Index t) { return key_present(head, chunk.begin + t); }, value);
}

}  // namespace
}  // namespace cosformer::kernels::cpu
