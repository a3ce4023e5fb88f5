// The phases of the backward pass: which item does what to which slot of the workspace.
#pragma once

#include "kernels/cpu/body/backward.h"
#include "kernels/cpu/body/items.h"

namespace cosformer::kernels::cpu {
namespace {

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
    if (whole ? problem_.state_kv_in == nullptr : !last) {
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
      const ExternalState<T> incoming = kind == 0 ? external_state<T>(head, problem_.state_kv_in, problem_.state_z_in)
                                                  : ExternalState<T>{nullptr, nullptr};
      if (whole && incoming.kv != nullptr) {  // handed over by the forward pass
        import_state(head, incoming, StateLayout::kValueRows, slot(head, item.index, kind));
        continue;
      }
      import_state(head, incoming, StateLayout::kValueRows, scratch.state);
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
