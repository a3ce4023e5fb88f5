// The phases of the forward pass: which item does what to which slot of the workspace.
#pragma once

#include "kernels/cpu/body/forward.h"
#include "kernels/cpu/body/items.h"

namespace cosformer::kernels::cpu {
namespace {

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
    if (reads_whole_state(problem_)) {  // the backward pass reads it too
      export_state(head, slot(head, item.index, 0), StateLayout::kFeatureRows,
                   external_state<T>(head, problem_.state_kv_out, problem_.state_z_out));
    }
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

}  // namespace
}  // namespace cosformer::kernels::cpu
