// The phases: which item does what to which slot of the workspace.
#pragma once

#include "kernels/cpu/body/backward.h"
#include "kernels/cpu/body/forward.h"

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
          problem.theta != nullptr ? problem.theta[item.head] : sequence.theta,
          problem.log_decay != nullptr ? problem.log_decay[item.head] : 0.0,
          streams_results};
}

template <class T>
void copy_state(const PaddedShape& shape, const T* from, T* to) {
  for (Index i = 0; i < shape.state; ++i) to[i] = from[i];
}

// Without std::array's own functions, which are not this translation unit's to compile.
[[maybe_unused]] Index first_items(const Schedule& schedule) {
  return *reinterpret_cast<const Index*>(&schedule.items);
}

template <class T>
class ForwardRun {
 public:
  ForwardRun(const AttentionProblem& problem, const Schedule& schedule, const Work& work)
      : problem_(problem),
        per_segment_(chunks_per_segment(problem, schedule, traits_of(problem).chunk)),
        work_(work),
        streams_results_(streams_results(problem)) {
    single_phase_ = schedule.phases == 1;
    const Index heads = problem.sequence_count * problem.heads;
    column_halves_ = single_phase_ && schedule.segments == 1 && first_items(schedule) == 2 * heads ? 2 : 1;
  }

  void run() {
    ItemCursor cursor(problem_, traits_of(problem_).chunk, per_segment_);
    for (Index i = work_.begin; i < work_.end; ++i) {
      const bool per_head = !single_phase_ && work_.phase == 1;
      const Item item = per_head ? cursor.head_item(i) : cursor.segment_item(i / column_halves_);
      const AttentionProblem part = column_halves_ == 2 ? half_of_columns(i % 2) : problem_;
      const HeadContext head = head_context<T>(part, item, streams_results_);
      Carver<T> carver(work_.scratch);
      const ForwardScratch<T> scratch = carve_forward(carver, part, head.shape, per_segment_);
      prepare_offsets(head, scratch.angles);
      if (single_phase_ || work_.phase == 2) {
        attend(head, item, scratch);
      } else if (work_.phase == 0) {
        sum_segment(head, item, scratch);
      } else {
        scan_slots(head, item, scratch);
      }
    }
  }

 private:
  Index kinds() const { return scans_both_sides(problem_) ? 2 : 1; }
  T* slot(const HeadContext& head, Index item, Index kind) const {
    return static_cast<T*>(work_.workspace) + (item * kinds() + kind) * head.shape.state;
  }

  // The problem with half of the value columns. One of the two writes the row sums.
  AttentionProblem half_of_columns(Index half) const {
    AttentionProblem part = problem_;
    part.value_dim /= 2;
    const Index bytes = half * part.value_dim * element_bytes(part.dtype);
    part.v.data = static_cast<const char*>(part.v.data) + bytes;
    part.out.data = static_cast<char*>(part.out.data) + bytes;
    if (half != 0) part.denominator.data = nullptr;
    return part;
  }

  void sum_segment(const HeadContext& head, const Item& item, const ForwardScratch<T>& scratch) {
    ForwardSegment<T> segment(head, scratch, segment_at(head.grid, per_segment_, item.segment));
    if (reads_whole_state(problem_) || item.segment + 1 < item.segments) {
      segment.sum_keys(Scan::kFromLeft);
      copy_state(head.shape, scratch.state, slot(head, item.index, 0));
    }
    if (scans_both_sides(problem_) && item.segment > 0) {
      segment.sum_keys(Scan::kFromRight);
      copy_state(head.shape, scratch.state, slot(head, item.index, 1));
    }
  }

  void scan_slots(const HeadContext& head, const Item& item, const ForwardScratch<T>& scratch) {
    const Index stride = kinds() * head.shape.state;
    import_state(head, external_state<T>(head, problem_.state_kv_in, problem_.state_z_in), StateLayout::kFeatureRows,
                 scratch.state);
    scan_segments(head, per_segment_, item.segments, reads_whole_state(problem_) ? Flow::kSum : Flow::kLeftToRight,
                  slot(head, item.index, 0), stride, scratch.state);
    if (!scans_both_sides(problem_)) return;
    fill_zero(scratch.state, head.shape.state);
    scan_segments(head, per_segment_, item.segments, Flow::kRightToLeft, slot(head, item.index, 1), stride,
                  scratch.state);
  }

  void attend(const HeadContext& head, const Item& item, const ForwardScratch<T>& scratch) {
    ForwardSegment<T> segment(head, scratch, segment_at(head.grid, per_segment_, item.segment));
    if (reads_whole_state(problem_)) {
      segment.read_whole_state(slot(head, item.index - item.segment, 0));
      return;
    }
    const bool both_sides = scans_both_sides(problem_);
    if (both_sides) {
      copy_state(head.shape, slot(head, item.index, 1), scratch.state);
      segment.scan(Scan::kFromRight, true, {nullptr, nullptr});
    }
    const ExternalState<T> state_in = external_state<T>(head, problem_.state_kv_in, problem_.state_z_in);
    const ExternalState<T> state_out = external_state<T>(head, problem_.state_kv_out, problem_.state_z_out);
    if (single_phase_ && is_decode_step<T>(head)) {
      segment.decode(state_in, state_out);
      return;
    }
    if (single_phase_) {
      import_state(head, state_in, StateLayout::kFeatureRows, scratch.state);
    } else {
      copy_state(head.shape, slot(head, item.index, 0), scratch.state);
    }
    if (head.grid.key_chunks == 0 && item.segment == 0) {
      export_state(head, scratch.state, StateLayout::kFeatureRows, state_out);
    }
    segment.scan(Scan::kFromLeft, both_sides, state_out);
  }

  const AttentionProblem& problem_;
  const Index per_segment_;
  const Work& work_;
  const bool streams_results_;
  bool single_phase_;
  Index column_halves_;
};

template <class T>
class BackwardRun {
 public:
  BackwardRun(const AttentionProblem& problem, const AttentionGradients& gradients, const Schedule& schedule,
              const Work& work)
      : problem_(problem),
        gradients_(gradients),
        per_segment_(chunks_per_segment(problem, schedule, traits_of(problem).chunk)),
        work_(work),
        streams_results_(streams_results(problem)),
        single_phase_(schedule.phases == 1),
        segment_items_(first_items(schedule)) {}

  void run() {
    ItemCursor cursor(problem_, traits_of(problem_).chunk, per_segment_);
    for (Index i = work_.begin; i < work_.end; ++i) {
      const bool per_head = !single_phase_ && (work_.phase == 1 || work_.phase == 3);
      const Item item = per_head ? cursor.head_item(i) : cursor.segment_item(i);
      const HeadContext head = head_context<T>(problem_, item, streams_results_);
      Carver<T> carver(work_.scratch);
      const BackwardScratch<T> scratch = carve_backward(carver, problem_, head.shape, per_segment_);
      prepare_offsets(head, scratch.angles);
      if (single_phase_ || work_.phase == 2) {
        differentiate(head, item, scratch);
      } else if (work_.phase == 0) {
        sum_segment(head, item, scratch);
      } else if (work_.phase == 1) {
        scan_slots(head, item, scratch);
      } else {
        sum_decay_gradients(head, item);
      }
    }
  }

 private:
  // Kinds of slots: the state from the left, its gradient, and for both sides the same pair from the right.
  Index kinds() const { return scans_both_sides(problem_) ? 4 : 2; }
  T* slot(const HeadContext& head, Index item, Index kind) const {
    return static_cast<T*>(work_.workspace) + (item * kinds() + kind) * head.shape.state;
  }
  double* decay_slots(const HeadContext& head) const {
    return reinterpret_cast<double*>(slot(head, segment_items_, 0));
  }

  void sum_segment(const HeadContext& head, const Item& item, const BackwardScratch<T>& scratch) {
    BackwardSegment<T> segment(head, gradients_, scratch, segment_at(head.grid, per_segment_, item.segment));
    const bool whole = reads_whole_state(problem_);
    const bool first = item.segment == 0, last = item.segment + 1 == item.segments;
    if (whole || !last) {
      segment.sum_keys(Scan::kFromLeft);
      copy_state(head.shape, scratch.state, slot(head, item.index, 0));
    }
    if (whole || !first) {
      segment.sum_queries(Scan::kFromLeft);
      copy_state(head.shape, scratch.d_state, slot(head, item.index, 1));
    }
    if (!scans_both_sides(problem_)) return;
    if (!first) {
      segment.sum_keys(Scan::kFromRight);
      copy_state(head.shape, scratch.state, slot(head, item.index, 2));
    }
    if (!last) {
      segment.sum_queries(Scan::kFromRight);
      copy_state(head.shape, scratch.d_state, slot(head, item.index, 3));
    }
  }

  void scan_slots(const HeadContext& head, const Item& item, const BackwardScratch<T>& scratch) {
    const Index stride = kinds() * head.shape.state;
    const bool whole = reads_whole_state(problem_);
    const Flow flows[4] = {whole ? Flow::kSum : Flow::kLeftToRight, whole ? Flow::kSum : Flow::kRightToLeft,
                           Flow::kRightToLeft, Flow::kLeftToRight};
    for (Index kind = 0; kind < kinds(); ++kind) {
      const bool incoming = kind == 0 && !whole;
      import_state(head,
                   incoming ? external_state<T>(head, problem_.state_kv_in, problem_.state_z_in)
                            : ExternalState<T>{nullptr, nullptr},
                   StateLayout::kValueRows, scratch.state);
      scan_segments(head, per_segment_, item.segments, flows[kind], slot(head, item.index, kind), stride,
                    scratch.state);
    }
  }

  void differentiate(const HeadContext& head, const Item& item, const BackwardScratch<T>& scratch) {
    BackwardSegment<T> segment(head, gradients_, scratch, segment_at(head.grid, per_segment_, item.segment));
    if (reads_whole_state(problem_)) {
      const Sweep sweep{Scan::kFromLeft, false, false, false};
      copy_state(head.shape, slot(head, item.index - item.segment, 0), scratch.state);
      segment.sweep_queries(sweep);
      copy_state(head.shape, slot(head, item.index - item.segment, 1), scratch.d_state);
      segment.sweep_keys(sweep);
      if (gradients_.d_log_decay != nullptr) decay_slots(head)[item.index] = 0;
      return;
    }
    const bool both_sides = scans_both_sides(problem_);
    double through_states = 0;
    if (both_sides) through_states += sweep_both(head, item, scratch, segment, {Scan::kFromRight, true, true, false});
    through_states += sweep_both(head, item, scratch, segment, {Scan::kFromLeft, true, false, both_sides});
    if (item.segment == 0) {
      if (head.grid.key_chunks == 0) {
        add_external(head, external_state<T>(head, gradients_.d_state_kv_out, gradients_.d_state_z_out),
                     StateLayout::kFeatureRows, scratch.d_state);
      }
      export_state(head, scratch.d_state, StateLayout::kFeatureRows,
                   external_state<T>(head, gradients_.d_state_kv_in, gradients_.d_state_z_in));
    }
    if (gradients_.d_log_decay == nullptr) return;
    const double total = segment.decay_gradient() + through_states;
    if (single_phase_) {
      gradients_.d_log_decay[item.sequence * problem_.heads + item.head] = total;
    } else {
      decay_slots(head)[item.index] = total;
    }
  }

  // The state that reaches this segment along a scan.
  void incoming_state(const HeadContext& head, const Item& item, const BackwardScratch<T>& scratch, Scan scan) {
    if (single_phase_) {
      import_state(head, external_state<T>(head, problem_.state_kv_in, problem_.state_z_in), StateLayout::kValueRows,
                   scratch.state);
    } else {
      copy_state(head.shape, slot(head, item.index, scan == Scan::kFromLeft ? 0 : 2), scratch.state);
    }
  }

  // Both sweeps of one scan. Returns the part of the decay's gradient that passes through the segment's ends: a state
  // is one token away from the segment's first, and the last token's position away from the gradient that arrives.
  double sweep_both(const HeadContext& head, const Item& item, const BackwardScratch<T>& scratch,
                    BackwardSegment<T>& segment, const Sweep& sweep) {
    const bool wants_decay = gradients_.d_log_decay != nullptr;
    const Index tokens = segment_at(head.grid, per_segment_, item.segment).tokens;
    double through = 0;
    incoming_state(head, item, scratch, sweep.scan);
    segment.sweep_queries(sweep);
    if (single_phase_) {
      fill_zero(scratch.d_state, head.shape.state);
    } else {
      copy_state(head.shape, slot(head, item.index, sweep.scan == Scan::kFromLeft ? 1 : 3), scratch.d_state);
      if (wants_decay) through += static_cast<double>(tokens - 1) * product(head, scratch);
    }
    segment.sweep_keys(sweep);
    if (wants_decay) {
      incoming_state(head, item, scratch, sweep.scan);
      through += product(head, scratch);
    }
    return through;
  }

  double product(const HeadContext& head, const BackwardScratch<T>& scratch) const {
    return inner_product(head.shape, scratch.state, StateLayout::kValueRows, scratch.d_state,
                         StateLayout::kFeatureRows);
  }

  void sum_decay_gradients(const HeadContext& head, const Item& item) {
    if (gradients_.d_log_decay == nullptr) return;
    double total = 0;
    for (Index g = 0; g < item.segments; ++g) total += decay_slots(head)[item.index + g];
    gradients_.d_log_decay[item.sequence * problem_.heads + item.head] = total;
  }

  const AttentionProblem& problem_;
  const AttentionGradients& gradients_;
  const Index per_segment_;
  const Work& work_;
  const bool streams_results_;
  const bool single_phase_;
  const Index segment_items_;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
