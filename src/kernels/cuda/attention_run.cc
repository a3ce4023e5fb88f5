#include "kernels/cuda/attention_run.h"

#include <utility>

#include "kernels/cuda/general/launch_table.h"
#include "kernels/cuda/hopper/launch.h"
#include "kernels/cuda/plan/parameters.h"
#include "kernels/cuda/plan/states.h"

namespace cosformer::kernels::cuda {

AttentionRun::AttentionRun(const Problem& problem, const Gradients* gradients, const Choice& choice,
                           const HeadPart& part, void* memory, cudaStream_t stream)
    : p_(problem), g_(gradients), choice_(choice), part_(part), stream_(stream) {
  const Workspace& w = choice.workspace;
  const auto at = [&]<class T>(T*& piece, std::size_t begin) {
    piece = begin == Workspace::kNone ? nullptr : reinterpret_cast<T*>(static_cast<char*>(memory) + begin);
  };
  at(row_scalar_, w.row_scalar);
  at(query_decay_, w.query_decay);
  at(key_decay_, w.key_decay);
  at(state_decay_, w.state_decay);
  at(after_extras_, w.states_after_extras);
  at(after_segments_, w.states_after_segments);
  at(key_slots_, w.key_slots);
  at(query_slots_, w.query_slots);
  at(cooperative_sums_, w.cooperative_sums);
  at(segment_flags_, w.segment_flags);
  if (choice.keys_in_key_sums) key_slots_ = problem.key_sums;
}

// --- The parameters of sweeps.

namespace {

void set_cut(SweepParams& s, const Segments& segments) {
  s.segments = segments.count;
  s.segment_tokens = segments.tokens;
}

void use_slots(SweepParams& s, float* slots, int count, int step, bool carried) {
  s.states = slots;
  s.slots = count;
  s.total_slot = count - 1;
  s.slot_step = step;
  s.initial = s.segments > 1 || carried ? InitialState::kOfSegment : InitialState::kZero;
}

// Full attention without a decay: one sum over all keys, or all queries, serves every row.
void sum_columns(SweepParams& s, const Segments& segments, float* slots, int count) {
  set_cut(s, segments);
  s.frame = Frame::kColumns;
  s.states = slots;
  s.slots = count;
  s.store = StoreState::kOfSegment;
}
void take_rows_to_sum(SweepParams& s, const Segments& segments, float* slots, int count) {
  set_cut(s, segments);
  s.frame = Frame::kRows;
  s.states = slots;
  s.slots = count;
  s.total_slot = count - 1;
  s.initial = InitialState::kTotal;
}

}  // namespace

Contribution AttentionRun::contribution_of(Role role, int side) const {
  if (!choice_.plan.two_sided || choice_.family == Family::kBothSides) return part_.contribution_of(role);
  return side == 0 ? Contribution::kFirstOfTwo : Contribution::kSecondOfTwo;
}

SweepParams AttentionRun::running(Role role, bool reversed) const {
  SweepParams s = sweep_params(p_, g_, role, row_scalar_);
  set_cut(s, choice_.plan.sweep);
  s.precise = role == Role::kForward && g_ == nullptr && p_.state_kv_out != nullptr ? 1 : 0;
  s.reversed = reversed ? 1 : 0;
  const bool second = choice_.plan.two_sided && reversed;
  s.strict = second ? 1 : 0;
  s.contribution = contribution_of(role, second ? 1 : 0);
  return s;
}

void AttentionRun::cut_finer(SweepParams& sweep, int finer, int slot_step) {
  sweep.slot_step = slot_step;
  sweep.segments *= finer;
  sweep.segment_tokens /= finer;
}

void AttentionRun::use_key_slots(SweepParams& sweep) const {
  use_slots(sweep, key_slots_, choice_.plan.key_slots, choice_.plan.key_sums_per_segment, p_.state_kv_in != nullptr);
}
void AttentionRun::use_query_slots(SweepParams& sweep) const {
  use_slots(sweep, query_slots_, choice_.plan.query_slots, choice_.plan.query_sums_per_segment,
            g_->d_state_kv_out != nullptr);
}

SweepParams AttentionRun::keys_to_sum() const {
  SweepParams s = sweep_params(p_, g_, Role::kForward, row_scalar_);
  sum_columns(s, choice_.plan.sum_keys, key_slots_, choice_.plan.key_slots);
  return s;
}
SweepParams AttentionRun::queries_to_sum() const {
  SweepParams s = sweep_params(p_, g_, Role::kValueGradient, row_scalar_);
  sum_columns(s, choice_.plan.sum_queries, query_slots_, choice_.plan.query_slots);
  return s;
}
SweepParams AttentionRun::against_key_sum(Role role, const Segments& segments) const {
  SweepParams s = sweep_params(p_, g_, role, row_scalar_);
  take_rows_to_sum(s, segments, key_slots_, choice_.plan.key_slots);
  s.contribution = part_.contribution_of(role);
  return s;
}
SweepParams AttentionRun::against_query_sum(Role role, const Segments& segments) const {
  SweepParams s = sweep_params(p_, g_, role, row_scalar_);
  take_rows_to_sum(s, segments, query_slots_, choice_.plan.query_slots);
  s.contribution = part_.contribution_of(role);
  return s;
}

HopperParams AttentionRun::for_hopper(Role role, const SweepParams& sweep) const {
  HopperParams w = hopper_params(p_, g_, role, sweep);
  w.sums = query_slots_;
  w.sum_slots = choice_.plan.query_slots;
  w.segment_flags = segment_flags_;
  return w;
}

HopperRole AttentionRun::hopper_role(Role role) const {
  if (role == Role::kForward) return HopperRole::kForward;
  if (role == Role::kQueryGradient) return HopperRole::kQueries;
  // The gradients of narrow heads' keys and values are one sweep.
  return choice_.sums == Family::kWide && role == Role::kValueGradient ? HopperRole::kValues : HopperRole::kKeys;
}

// --- Launches.

bool AttentionRun::describe_rows(HopperParams& params, bool columns) {
  const TileRows rows = choice_.family == Family::kNarrow ? TileRows::kOfWarp : TileRows::kOfChunk;
  if (describe_tensors(params, columns, rows)) return true;
  refused_by_driver_ = true;
  return false;
}

void AttentionRun::launch(Role role, Mode mode, const SweepParams& sweep) {
  const Family family = mode == Mode::kSum ? choice_.sums : choice_.family;
  if (family == Family::kGeneral) {
    add([&](cudaStream_t stream) {
      return launch_role(role, mode, p_.dtype, padded_features(features_of(p_, role)), sweep, stream);
    });
    return;
  }
  HopperParams params = for_hopper(role, sweep);
  const HopperRole hopper = hopper_role(role);
  const Fetch fetch = mode == Mode::kSum ? choice_.sum_fetch : choice_.fetch;
  add([&](cudaStream_t stream) {
    if (fetch == Fetch::kTma && !describe_rows(params, mode == Mode::kRun)) return cudaErrorNotSupported;
    if (family == Family::kNarrow) return launch_narrow(hopper, mode, fetch, params, stream);
    if (choice_.state_in_registers && mode == Mode::kRun) return launch_wide_in_registers(fetch, params, stream);
    return launch_wide(hopper, mode, fetch, params, stream);
  });
}

void AttentionRun::launch_single(Role first_role, const SweepParams& first, Role second_role,
                                 const SweepParams& second) {
  const HopperParams summing = for_hopper(first_role, first);
  HopperParams rows = for_hopper(second_role, second);
  add([&](cudaStream_t stream) {
    if (choice_.fetch == Fetch::kTma && !describe_rows(rows, false)) return cudaErrorNotSupported;
    return launch_narrow_single(hopper_role(first_role), choice_.fetch, summing, rows, stream);
  });
}

void AttentionRun::launch_cooperatively(const SweepParams& sweep) {
  HopperParams w = for_hopper(Role::kForward, sweep);
  const bool narrow = choice_.family == Family::kNarrow;
  if (narrow) {
    const CooperativeCut cut = cooperative_cut(choice_.plan.longest, sweep.segments);
    w.sweep.segment_tokens = cut.tokens;
    w.sweep.first_tokens = cut.first;
    w.sweep.states = cooperative_sums_;
    if (choice_.keys_in_key_sums) {
      w.kept = key_slots_;
      w.kept_tokens = choice_.plan.sweep.tokens;
    }
  }
  add([&](cudaStream_t stream) {
    if (!describe_rows(w, true)) return cudaErrorNotSupported;
    return narrow ? launch_narrow_cooperatively(w, stream) : launch_wide_cooperatively(w, stream);
  });
}

SweepParams AttentionRun::sweep_both_sides(Role role, const View& waiting) {
  const bool of_queries = role == Role::kKeyGradient;
  SweepParams sweep = running(role, false);
  if (of_queries) {
    use_query_slots(sweep);
  } else {
    use_key_slots(sweep);
  }
  if (g_ != nullptr && g_->d_log_decay != nullptr) sweep.decay_gradient = of_queries ? key_decay_ : query_decay_;
  HopperParams w = for_hopper(role, sweep);
  w.after = source(waiting, p_.value_dim, p_.dtype);
  w.after_extras = after_extras_;
  w.after_segments = after_segments_;
  add([&](cudaStream_t stream) { return launch_states_after(of_queries, choice_.sum_fetch, w, stream); });
  if ((of_queries ? choice_.queries : choice_.keys) == Launch::kSegmentScan) {
    const StateParams scanned{&sweep, nullptr, nullptr, nullptr, nullptr, of_queries, false, after_segments_};
    add([&](cudaStream_t stream) { return launch_state_scan(scanned, stream); });
  }
  add([&](cudaStream_t stream) { return launch_both_sides(hopper_role(role), choice_.fetch, w, stream); });
  return sweep;
}

void AttentionRun::sum_keys_before_segments(bool reversed) {
  SweepParams s = running(Role::kForward, reversed);
  const int finer = choice_.plan.key_sums_per_segment;
  cut_finer(s, finer, choice_.state_in_registers ? 1 : finer);
  s.states = key_slots_;
  s.slots = choice_.plan.key_slots;
  sum_before_segments(choice_.keys, Role::kForward, s, false, p_.state_kv_in, p_.state_z_in);
}

void AttentionRun::sum_queries_before_segments(bool reversed) {
  SweepParams s = running(Role::kValueGradient, reversed);
  cut_finer(s, choice_.plan.query_sums_per_segment, choice_.plan.query_sums_per_segment);
  s.states = query_slots_;
  s.slots = choice_.plan.query_slots;
  sum_before_segments(choice_.queries, Role::kValueGradient, s, true, g_->d_state_kv_out, g_->d_state_z_out);
}

void AttentionRun::sum_before_segments(Launch how, Role role, const SweepParams& sums, bool gradient, const float* kv,
                                       const float* z) {
  if (how == Launch::kSingle) return;
  SweepParams s = sums;
  s.initial = InitialState::kZero;
  if (how == Launch::kCooperativeScan) {
    add([&](cudaStream_t stream) {
      return launch_wide_cooperative_scan(hopper_role(role), choice_.sum_fetch, for_hopper(role, s), stream);
    });
    return;
  }
  s.store = StoreState::kOfSegment;
  if (s.segments > 1) launch(role, Mode::kSum, s);
  scan(sums, gradient, kv, z, false);
}

void AttentionRun::scan(const SweepParams& sums, bool gradient, const float* kv, const float* z, bool total) {
  const StateParams params{&sums, kv, z, nullptr, nullptr, gradient, total, nullptr};
  add([&](cudaStream_t stream) { return launch_state_scan(params, stream); });
}

void AttentionRun::export_state(const SweepParams& sweep, bool gradient, float* kv, float* z) {
  const StateParams params{&sweep, nullptr, nullptr, kv, z, gradient, false, nullptr};
  add([&](cudaStream_t stream) { return launch_state_export(params, stream); });
}

void AttentionRun::sum_keys() {
  const SweepParams s = keys_to_sum();
  launch(Role::kForward, Mode::kSum, s);
  if (choice_.keys == Launch::kSegmentScan) scan(s, false, nullptr, nullptr, true);
}

// Copies the totals out of the slots.
void AttentionRun::keep_key_sum() {
  const std::size_t bytes = static_cast<std::size_t>(choice_.plan.slot_floats) * sizeof(float);
  const float* totals = key_slots_ + (choice_.plan.key_slots - 1) * choice_.plan.slot_floats;
  add([&](cudaStream_t stream) {
    return cudaMemcpy2DAsync(p_.key_sums, bytes, totals, bytes * static_cast<std::size_t>(choice_.plan.key_slots),
                             bytes, static_cast<std::size_t>(heads()), cudaMemcpyDeviceToDevice, stream);
  });
}

// The sums of the queries' segments become their total.
void AttentionRun::add_up_queries() {
  SweepParams s = queries_to_sum();
  std::swap(s.q_length, s.k_length);  // the scan measures the side that was summed
  std::swap(s.cu_seqlens_q, s.cu_seqlens_k);
  scan(s, true, nullptr, nullptr, true);
}

void AttentionRun::sum_decay(const SweepParams& sweep) {
  DecayParams d{};
  d.sweep = &sweep;
  d.query_parts = query_decay_;
  d.key_parts = key_decay_;
  d.sweeps = choice_.family == Family::kBothSides ? 1 : (choice_.plan.two_sided ? 2 : part_.count);
  d.query_slices = d.key_slices = decay_slices(p_, choice_);
  d.query_segments = d.key_segments = choice_.plan.sweep.count;
  if (p_.state_kv_in != nullptr || g_->d_state_kv_out != nullptr) {
    d.final_states = key_slots_;
    d.gradient_states = query_slots_;
    d.kv_in = p_.state_kv_in;
    d.z_in = p_.state_z_in;
    d.d_kv_out = g_->d_state_kv_out;
    d.d_z_out = g_->d_state_z_out;
    d.state_terms = state_decay_;
  }
  d.result = g_->d_log_decay;
  add([&](cudaStream_t stream) { return launch_decay_gradient(d, stream); });
}

}  // namespace cosformer::kernels::cuda
