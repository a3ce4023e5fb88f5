#include "kernels/cpu/plan.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/scratch.h"

namespace cosformer::kernels::cpu {
namespace {

// A segment shorter than this costs more in its own state than another thread brings.
constexpr std::int64_t kFewestChunksPerSegment = 4;

// How many parts the longest sequence is split into. A causal pass pays for a split with a second pass over keys and
// values (`split_cost` times the work of an unsplit one), so it splits only where threads would idle for longer.
std::int64_t choose_segments(const AttentionProblem& problem, int threads, std::int64_t chunk, double split_cost) {
  const std::int64_t longest = longest_in_chunks(problem, chunk);
  const std::int64_t heads = problem.sequence_count * problem.heads;
  const std::int64_t most = std::max<std::int64_t>(1, longest / kFewestChunksPerSegment);
  std::int64_t segments = 1;
  if (threads > 1 && heads > 0) {
    const std::int64_t rounds = (heads + threads - 1) / threads;
    const double idle_cost = static_cast<double>(rounds * threads) / static_cast<double>(heads);
    if (idle_cost > split_cost) segments = threads / std::gcd(heads, static_cast<std::int64_t>(threads));
  }
  segments = std::clamp<std::int64_t>(segments, 1, most);
  if (scans_both_sides(problem)) {
    segments = std::max(segments, (longest + kBothSidesSegmentChunks - 1) / kBothSidesSegmentChunks);
  }
  return segments;
}

std::int64_t count_segment_items(const AttentionProblem& problem, const Schedule& schedule, std::int64_t chunk) {
  const std::int64_t per_segment = chunks_per_segment(problem, schedule, chunk);
  std::int64_t items = 0;
  for (std::int64_t s = 0; s < problem.sequence_count; ++s) {
    items += problem.heads * segments_of(make_grid(problem.sequences[s], chunk), per_segment);
  }
  return items;
}

template <class T>
Schedule plan_fwd(const AttentionProblem& problem, int threads, const BodyTraits& traits) {
  Schedule schedule;
  schedule.segments = choose_segments(problem, threads, traits.chunk, problem.causal ? 1.5 : 1.0);
  // Two threads to a head share it better by halves of the value columns: nothing but scores is computed twice.
  std::int64_t column_halves = 1;
  if (problem.causal && schedule.segments == 2 && can_halve_columns<T>(problem, traits)) {
    schedule.segments = 1;
    column_halves = 2;
  }
  const std::int64_t per_segment = chunks_per_segment(problem, schedule, traits.chunk);
  const std::int64_t items = count_segment_items(problem, schedule, traits.chunk);
  const PaddedShape shape = padded_shape<T>(problem, traits);
  Carver<T> scratch(nullptr);
  carve_forward(scratch, problem, shape, per_segment);
  schedule.scratch_bytes = scratch.used();
  if (problem.causal && schedule.segments == 1) {
    schedule.phases = 1;
    schedule.items[0] = items * column_halves;
    return schedule;
  }
  schedule.phases = 3;
  schedule.items = {items, problem.sequence_count * problem.heads, items};
  Carver<T> workspace(nullptr);
  workspace.take(items * shape.state * (scans_both_sides(problem) ? 2 : 1));
  schedule.workspace_bytes = workspace.used();
  return schedule;
}

template <class T>
Schedule plan_bwd(const AttentionProblem& problem, int threads, const BodyTraits& traits) {
  Schedule schedule;
  schedule.segments = choose_segments(problem, threads, traits.chunk, problem.causal ? 1.2 : 1.0);
  const std::int64_t per_segment = chunks_per_segment(problem, schedule, traits.chunk);
  const std::int64_t items = count_segment_items(problem, schedule, traits.chunk);
  const PaddedShape shape = padded_shape<T>(problem, traits);
  Carver<T> scratch(nullptr);
  carve_backward(scratch, problem, shape, per_segment);
  schedule.scratch_bytes = scratch.used();
  if (problem.causal && schedule.segments == 1) {
    schedule.phases = 1;
    schedule.items[0] = items;
    return schedule;
  }
  const std::int64_t heads = problem.sequence_count * problem.heads;
  schedule.phases = 4;
  schedule.items = {items, heads, items, heads};
  Carver<T> workspace(nullptr);
  workspace.take(items * shape.state * (scans_both_sides(problem) ? 4 : 2));
  workspace.template take<double>(items);
  schedule.workspace_bytes = workspace.used();
  return schedule;
}

}  // namespace

Schedule plan_attention_fwd(const AttentionProblem& problem, int threads, std::int64_t vector_bytes, std::int64_t chunk,
                            bool half_products) {
  const BodyTraits traits{vector_bytes, chunk, half_products};
  return problem.dtype == DType::kFloat64 ? plan_fwd<double>(problem, threads, traits)
                                          : plan_fwd<float>(problem, threads, traits);
}

Schedule plan_attention_bwd(const AttentionProblem& problem, int threads, std::int64_t vector_bytes, std::int64_t chunk,
                            bool half_products) {
  const BodyTraits traits{vector_bytes, chunk, half_products};
  return problem.dtype == DType::kFloat64 ? plan_bwd<double>(problem, threads, traits)
                                          : plan_bwd<float>(problem, threads, traits);
}

}  // namespace cosformer::kernels::cpu
