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
    for (Index i = work_.begin, count = 1; i < work_.end; i += count) {
      const bool per_head = !single_phase_ && work_.phase == 1;
      const Item item = per_head ? cursor.head_item(i) : cursor.segment_item(i / column_halves_);
      const AttentionProblem part = column_halves_ == 2 ? half_of_columns(i % 2) : problem_;
      const HeadContext head = head_context<T>(part, item, streams_results_);
      Carver<T> carver(work_.scratch);
      const ForwardScratch<T> scratch = carve_forward(carver, part, head.shape, per_segment_);
      if (per_head) {
        scan_slots(head, item, scratch);
        continue;
      }
      if (column_halves_ == 1) count = count_together<T>(head, item, work_.end - i);
      ForwardSegment<T> segment(head, count, scratch, segment_at(head.grid, per_segment_, item.segment));
      if (single_phase_ || work_.phase == 2) {
        attend(segment, item);
      } else {
        sum_segment(segment, item);
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

  // The slot of the head that a segment has turned to: the heads that go together have one segment each.
  T* slot(const ForwardSegment<T>& segment, const Item& item, Index kind) const {
    return slot(segment.head(), item.index + segment.head().head - item.head, kind);
  }
  void keep(ForwardSegment<T>& segment, const Item& item, Index kind) {
    segment.for_heads([&] { copy_state(segment.head().shape, segment.state(), slot(segment, item, kind)); });
  }
  void restore(ForwardSegment<T>& segment, const Item& item, Index kind) {
    segment.for_heads([&] { copy_state(segment.head().shape, slot(segment, item, kind), segment.state()); });
  }

  void sum_segment(ForwardSegment<T>& segment, const Item& item) {
    if (reads_whole_state(problem_) || item.segment + 1 < item.segments) {
      segment.sum_keys(Scan::kFromLeft);
      keep(segment, item, 0);
    }
    if (scans_both_sides(problem_) && item.segment > 0) {
      segment.sum_keys(Scan::kFromRight);
      keep(segment, item, 1);
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

  void attend(ForwardSegment<T>& segment, Item item) {
    if (reads_whole_state(problem_)) {
      item.index -= item.segment;
      restore(segment, item, 0);
      segment.read_whole_state();
      return;
    }
    const bool both_sides = scans_both_sides(problem_);
    if (both_sides) {
      restore(segment, item, 1);
      segment.scan(Scan::kFromRight, true);
    }
    if (single_phase_ && is_decode_step<T>(segment.head())) {
      const HeadContext& head = segment.head();
      segment.decode(external_state<T>(head, problem_.state_kv_in, problem_.state_z_in),
                     external_state<T>(head, problem_.state_kv_out, problem_.state_z_out));
      return;
    }
    if (single_phase_) {
      segment.for_heads([&] {
        const HeadContext& head = segment.head();
        import_state(head, external_state<T>(head, problem_.state_kv_in, problem_.state_z_in),
                     StateLayout::kFeatureRows, segment.state());
      });
    } else {
      restore(segment, item, 0);
    }
    if (segment.head().grid.key_chunks == 0 && item.segment == 0) {
      segment.for_heads([&] { segment.export_state_out(); });
    }
    segment.scan(Scan::kFromLeft, both_sides);
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
    for (Index i = work_.begin, count = 1; i < work_.end; i += count) {
      const bool per_head = !single_phase_ && (work_.phase == 1 || work_.phase == 3);
      const Item item = per_head ? cursor.head_item(i) : cursor.segment_item(i);
      const HeadContext head = head_context<T>(problem_, item, streams_results_);
      Carver<T> carver(work_.scratch);
      const BackwardScratch<T> scratch = carve_backward(carver, problem_, head.shape, per_segment_);
      if (per_head && work_.phase == 1) scan_slots(head, item, scratch);
      if (per_head && work_.phase == 3) sum_decay_gradients(head, item);
      if (per_head) continue;
      count = count_together<T>(head, item, work_.end - i);
      BackwardSegment<T> segment(head, count, gradients_, scratch, segment_at(head.grid, per_segment_, item.segment));
      if (single_phase_ || work_.phase == 2) {
        differentiate(segment, item);
      } else {
        sum_segment(segment, item);
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

  // The item of the head that a segment has turned to: the heads that go together have one segment each.
  static Index index_of(const BackwardSegment<T>& segment, const Item& item) {
    return item.index + segment.head().head - item.head;
  }
  static T* state_of(BackwardSegment<T>& segment, Index kind) {
    return kind % 2 == 0 ? segment.state() : segment.d_state();
  }
  void keep(BackwardSegment<T>& segment, const Item& item, Index kind) {
    segment.for_heads([&] {
      const HeadContext& head = segment.head();
      copy_state(head.shape, state_of(segment, kind), slot(head, index_of(segment, item), kind));
    });
  }
  void restore(BackwardSegment<T>& segment, const Item& item, Index kind) {
    segment.for_heads([&] {
      const HeadContext& head = segment.head();
      copy_state(head.shape, slot(head, index_of(segment, item), kind), state_of(segment, kind));
    });
  }

  void sum_segment(BackwardSegment<T>& segment, const Item& item) {
    const bool whole = reads_whole_state(problem_), both_sides = scans_both_sides(problem_);
    const bool first = item.segment == 0, last = item.segment + 1 == item.segments;
    if (whole || !last) {
      segment.sum_keys(Scan::kFromLeft);
      keep(segment, item, 0);
    }
    if (whole || !first) {
      segment.sum_queries(Scan::kFromLeft);
      keep(segment, item, 1);
    }
    if (both_sides && !first) {
      segment.sum_keys(Scan::kFromRight);
      keep(segment, item, 2);
    }
    if (both_sides && !last) {
      segment.sum_queries(Scan::kFromRight);
      keep(segment, item, 3);
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

  void differentiate(BackwardSegment<T>& segment, const Item& item) {
    if (reads_whole_state(problem_)) {
      const Sweep sweep{Scan::kFromLeft, false, false, false};
      Item first = item;
      first.index -= item.segment;
      restore(segment, first, 0);
      segment.sweep_queries(sweep);
      restore(segment, first, 1);
      segment.sweep_keys(sweep);
    } else {
      const bool both_sides = scans_both_sides(problem_);
      if (both_sides) sweep_both(segment, item, {Scan::kFromRight, true, true, false});
      sweep_both(segment, item, {Scan::kFromLeft, true, false, both_sides});
      if (item.segment == 0) segment.for_heads([&] { export_state_gradient(segment); });
    }
    if (gradients_.d_log_decay == nullptr) return;
    segment.for_heads([&] {
      const HeadContext& head = segment.head();
      double& to = single_phase_ ? gradients_.d_log_decay[item.sequence * problem_.heads + head.head]
                                 : decay_slots(head)[index_of(segment, item)];
      to = reads_whole_state(problem_) ? 0 : segment.decay_gradient();
    });
  }

  // The gradient of the incoming state is what is left at the first token.
  void export_state_gradient(BackwardSegment<T>& segment) {
    const HeadContext& head = segment.head();
    if (head.grid.key_chunks == 0) {
      add_external(head, external_state<T>(head, gradients_.d_state_kv_out, gradients_.d_state_z_out),
                   StateLayout::kFeatureRows, segment.d_state());
    }
    export_state(head, segment.d_state(), StateLayout::kFeatureRows,
                 external_state<T>(head, gradients_.d_state_kv_in, gradients_.d_state_z_in));
  }

  // The state that reaches this segment along a scan.
  void incoming_state(BackwardSegment<T>& segment, const Item& item, Scan scan) {
    if (!single_phase_) {
      restore(segment, item, scan == Scan::kFromLeft ? 0 : 2);
      return;
    }
    segment.for_heads([&] {
      const HeadContext& head = segment.head();
      import_state(head, external_state<T>(head, problem_.state_kv_in, problem_.state_z_in), StateLayout::kValueRows,
                   segment.state());
    });
  }

  // Both sweeps of one scan, and the part of the decay's gradient that passes through the segment's ends: a state is
  // one token away from the segment's first, and the last token's position away from the gradient that arrives.
  void sweep_both(BackwardSegment<T>& segment, const Item& item, const Sweep& sweep) {
    const bool wants_decay = gradients_.d_log_decay != nullptr;
    const double to_arriving = static_cast<double>(segment.tokens() - 1);
    incoming_state(segment, item, sweep.scan);
    segment.sweep_queries(sweep);
    if (single_phase_) {
      segment.for_heads([&] { fill_zero(segment.d_state(), segment.head().shape.state); });
    } else {
      restore(segment, item, sweep.scan == Scan::kFromLeft ? 1 : 3);
      if (wants_decay) segment.for_heads([&] { segment.decay_gradient() += to_arriving * product(segment); });
    }
    segment.sweep_keys(sweep);
    if (!wants_decay) return;
    incoming_state(segment, item, sweep.scan);
    segment.for_heads([&] { segment.decay_gradient() += product(segment); });
  }

  static double product(BackwardSegment<T>& segment) {
    return inner_product(segment.head().shape, segment.state(), StateLayout::kValueRows, segment.d_state(),
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
