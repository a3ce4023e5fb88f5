// What the phases of both passes need to know of an item: its head, and how many heads go with it.
#pragma once

#include "kernels/cpu/body/decode.h"

namespace cosformer::kernels::cpu {
namespace {

#if defined(COSFORMER_BF16_DOT) || defined(COSFORMER_BF16_TILES)
constexpr bool kHalfProducts = true;
#else
constexpr bool kHalfProducts = false;
#endif
#if !defined(COSFORMER_HALF_CHUNK)
#define COSFORMER_HALF_CHUNK COSFORMER_CHUNK
#endif

// Chunks are longer where products are cheap beside the packing of the state into panels.
[[maybe_unused]] BodyTraits traits_of(const AttentionProblem& problem) {
  const bool half = kHalfProducts && problem.dtype == DType::kBFloat16;
  return {COSFORMER_VECTOR_BYTES, half ? COSFORMER_HALF_CHUNK : COSFORMER_CHUNK, half};
}

// Whether a tensor of results is too large for the caches.
[[maybe_unused]] bool streams_results(const AttentionProblem& problem) {
  Index tokens = 0;
  for (Index s = 0; s < problem.sequence_count; ++s) tokens += problem.sequences[s].q_length;
  return tokens * problem.heads * problem.value_dim * element_bytes(problem.dtype) >= kStreamedBytes;
}

template <class T>
HeadContext head_context(const AttentionProblem& problem, const Item& item, bool streams_results) {
  const Sequence& sequence = problem.sequences[item.sequence];
  return {problem,
          sequence,
          item.sequence,
          item.head,
          padded_shape<T>(problem, traits_of(problem)),
          make_grid(sequence, traits_of(problem).chunk),
          streams_results};
}

// How many heads from this item on go together: whole sequences of one problem, and not those of a decode step.
template <class T>
Index count_together(const HeadContext& head, const Item& item, Index left) {
  if (item.segments > 1 || is_decode_step<T>(head)) return 1;
  Index count = heads_together<T>(head.problem, head.shape);
  count = count < left ? count : left;
  return count < head.problem.heads - item.head ? count : head.problem.heads - item.head;
}

template <class T>
void copy_state(const PaddedShape& shape, const T* from, T* to) {
  for (Index i = 0; i < shape.state; ++i) to[i] = from[i];
}

// Without std::array's own functions, which are not this translation unit's to compile.
[[maybe_unused]] Index first_items(const Schedule& schedule) {
  return *reinterpret_cast<const Index*>(&schedule.items);
}

}  // namespace
}  // namespace cosformer::kernels::cpu
