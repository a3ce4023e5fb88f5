// The state between chunks, kv [2·dim, value_dim] and z [2·dim], padded: in from the caller, out to the caller, and the
// scan over the states of a head's segments.
#pragma once

#include "kernels/cpu/body/angles.h"
#include "kernels/cpu/body/half_rows.h"

namespace cosformer::kernels::cpu {
namespace {

template <class T>
struct ExternalState {
  T* kv;  // [2, dim, value_dim] of one head of one sequence; null: none
  T* z;   // [2, dim]
};

template <class T>
ExternalState<T> external_state(const HeadContext& head, const void* kv, const void* z) {
  if (kv == nullptr) return {nullptr, nullptr};
  const Index index = head.sequence_index * head.problem.heads + head.head;
  const Index dims = 2 * head.problem.dim;
  return {static_cast<T*>(const_cast<void*>(kv)) + index * dims * head.problem.value_dim,
          static_cast<T*>(const_cast<void*>(z)) + index * dims};
}

// Where element (part, d, e) of kv lies: rows of features, or for the backward pass over queries rows of values.
enum class StateLayout { kFeatureRows, kValueRows };

COSFORMER_INLINE Index state_offset(const PaddedShape& shape, StateLayout layout, Index part, Index d, Index e) {
  const Index feature = part * shape.dim + d;
  return layout == StateLayout::kFeatureRows ? feature * shape.value_dim + e : e * 2 * shape.dim + feature;
}

template <class T>
COSFORMER_INLINE T* z_of(const PaddedShape& shape, T* state) {
  return state + 2 * shape.dim * shape.value_dim;
}

template <class T>
void import_state(const HeadContext& head, ExternalState<T> from, StateLayout layout, T* state) {
  fill_zero(state, head.shape.state);
  if (from.kv == nullptr) return;
  for (Index part = 0; part < 2; ++part) {
    for (Index d = 0; d < head.problem.dim; ++d) {
      const Index row = part * head.problem.dim + d;
      for (Index e = 0; e < head.problem.value_dim; ++e) {
        state[state_offset(head.shape, layout, part, d, e)] = from.kv[row * head.problem.value_dim + e];
      }
      z_of(head.shape, state)[part * head.shape.dim + d] = from.z[row];
    }
  }
}

template <class T>
void export_state(const HeadContext& head, const T* state, StateLayout layout, ExternalState<T> to) {
  if (to.kv == nullptr) return;
  for (Index part = 0; part < 2; ++part) {
    for (Index d = 0; d < head.problem.dim; ++d) {
      const Index row = part * head.problem.dim + d;
      for (Index e = 0; e < head.problem.value_dim; ++e) {
        to.kv[row * head.problem.value_dim + e] = state[state_offset(head.shape, layout, part, d, e)];
      }
      to.z[row] = z_of(head.shape, state)[part * head.shape.dim + d];
    }
  }
}

template <class T>
void add_external(const HeadContext& head, ExternalState<T> from, StateLayout layout, T* state) {
  if (from.kv == nullptr) return;
  for (Index part = 0; part < 2; ++part) {
    for (Index d = 0; d < head.problem.dim; ++d) {
      const Index row = part * head.problem.dim + d;
      for (Index e = 0; e < head.problem.value_dim; ++e) {
        state[state_offset(head.shape, layout, part, d, e)] += from.kv[row * head.problem.value_dim + e];
      }
      z_of(head.shape, state)[part * head.shape.dim + d] += from.z[row];
    }
  }
}

// Σ over all elements of two states, in double; their layouts may differ.
template <class T>
double inner_product(const PaddedShape& shape, const T* x, StateLayout x_layout, const T* y, StateLayout y_layout) {
  double total = 0;
  for (Index feature = 0; feature < 2 * shape.dim; ++feature) {
    for (Index e = 0; e < shape.value_dim; ++e) {
      total += static_cast<double>(x[state_offset(shape, x_layout, 0, feature, e)]) *
               static_cast<double>(y[state_offset(shape, y_layout, 0, feature, e)]);
    }
    total += static_cast<double>(x[2 * shape.dim * shape.value_dim + feature]) *
             static_cast<double>(y[2 * shape.dim * shape.value_dim + feature]);
  }
  return total;
}

// Chunks [begin, end) of a segment, and its tokens.
struct Segment {
  Index begin = 0, end = 0, tokens = 0;
};

[[maybe_unused]] Segment segment_at(const ChunkGrid& grid, Index per_segment, Index index) {
  Segment segment;
  segment.begin = index * per_segment;
  segment.end = segment.begin + per_segment < grid.chunks ? segment.begin + per_segment : grid.chunks;
  for (Index c = segment.begin; c < segment.end; ++c) segment.tokens += chunk_at(grid, c).length;
  return segment;
}

// Which way the state of one kind flows over the segments.
enum class Flow { kLeftToRight, kRightToLeft, kSum };

// slots[g·stride] holds what segment g adds; after this, what reaches segment g from those before it along the flow
// (kSum: the sum of all, in the first slot). `running` starts as what reaches the first one, and is overwritten.
template <class T>
void scan_segments(const HeadContext& head, Index per_segment, Index segments, Flow flow, T* slots, Index stride,
                   T* running) {
  const Index n = head.shape.state;
  if (flow == Flow::kSum) {
    for (Index g = 1; g < segments; ++g) {
      for (Index i = 0; i < n; ++i) slots[i] += slots[g * stride + i];
    }
    return;
  }
  for (Index step = 0; step < segments; ++step) {
    const Index g = flow == Flow::kLeftToRight ? step : segments - 1 - step;
    T* slot = slots + g * stride;
    if (step + 1 == segments) {  // what the last one adds reaches nobody, and was not computed
      for (Index i = 0; i < n; ++i) slot[i] = running[i];
      return;
    }
    const auto decay =
        static_cast<T>(::exp(head.log_decay() * static_cast<double>(segment_at(head.grid, per_segment, g).tokens)));
    for (Index i = 0; i < n; ++i) {
      const T added = slot[i];
      slot[i] = running[i];
      running[i] = decay * running[i] + added;
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
