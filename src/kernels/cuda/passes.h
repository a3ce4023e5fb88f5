// The launches of the forward and the backward pass in their order, and what they have of the workspace.
#pragma once

#include <algorithm>
#include <optional>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/head_parts.h"
#include "kernels/cuda/launch_params.h"
#include "kernels/cuda/launch_table.h"
#include "kernels/cuda/pass_params.h"
#include "kernels/cuda/schedule.h"
#include "kernels/cuda/states.h"
#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda {

class Passes {
 public:
  Passes(const Problem& p, const Gradients* g, const HeadPart& part, void* memory, cudaStream_t stream)
      : p_(p),
        g_(g),
        part_(part),
        plan_(make_plan(p)),
        workspace_(memory),
        launches_(stream),
        warpgroup_(suits_warpgroup(p, g)) {
    const std::int64_t heads = p.sequences * p.heads;
    both_sides_ = plan_.two_sided && warpgroup_ && narrow() && same_tokens(p);
    if (both_sides_) plan_both_sides(plan_, heads);
    // First what goes from part to part: as long in each, so that it lies at the same places.
    const bool twice = (plan_.two_sided && !both_sides_) || part.out != SweepPass::kOnly;
    if (p.normalizer == Normalizer::kSum && (g != nullptr || twice)) {
      row_scalar_ = workspace_.take<float>(plan_.query_rows * p.heads);
    }
    if (g != nullptr && g->d_log_decay != nullptr) {
      const std::int64_t blocks = heads * plan_.state_cut.count * gradient_slices();
      query_decay_ = workspace_.take<double>(std::max(2, part.count) * blocks);
      key_decay_ = workspace_.take<double>(std::max(2, part.count) * blocks);
      state_decay_ = workspace_.take<double>(heads);
    }
    if (both_sides_) {
      after_extras_ = workspace_.take<float>((plan_.query_rows / kPairTokens + 1) * kPairTokens * p.heads);
      if (plan_.state_cut.count > 1) {  // the keys' and then the queries'
        key_slots_ = query_slots_ = workspace_.take<float>(heads * plan_.slots_keys * plan_.slot_floats);
        after_slots_ = workspace_.take<float>(heads * plan_.slots_keys * plan_.slot_floats);
      }
    }
    const bool running_slots = plan_.state_cut.count > 1 || plan_.state_slots ||
                               (g != nullptr && (g->d_state_kv_out != nullptr || g->d_state_kv_in != nullptr));
    if (!both_sides_ && (!plan_.scans || running_slots)) {
      if (handed() && (plan_.scans || g != nullptr || plan_.slots_keys == 1)) {
        key_slots_ = p.key_sums;
        if (!plan_.scans) plan_.slots_keys = 1;
      } else {
        key_slots_ = workspace_.take<float>(heads * std::max(plan_.slots_keys * plan_.slot_floats, joint_floats()));
        joint_sums_ = key_slots_;
      }
      if (handed() && joint_floats() > 0) joint_sums_ = workspace_.take<float>(heads * joint_floats());
      if (may_be_joint()) meetings_ = workspace_.take<unsigned>(heads * plan_.slots_keys);
      if (g != nullptr) query_slots_ = workspace_.take<float>(heads * plan_.slots_queries * plan_.slot_floats);
    }
  }

  std::size_t workspace_bytes() const { return workspace_.used(); }
  cudaError_t status() const { return launches_.status(); }

  void forward() {
    if (both_sides_) {
      sweep_both_sides(Role::kForward, p_.out);
      return;
    }
    if (!plan_.scans) {
      const SweepParams rows = applied(Role::kForward, plan_.apply_cut_queries, key_slots_, plan_.slots_keys);
      if (in_one_launch(plan_.sum_cut_keys, plan_.apply_cut_queries)) {
        launch_pair(Role::kForward, keys_to_sum(), Role::kForward, rows);
      } else {
        sum_keys();
        launch(Role::kForward, Mode::kApply, rows);
      }
      if (p_.key_sums != nullptr && p_.key_sums != key_slots_) keep_key_sums();
      return;
    }
    for (int side = 0; side < (plan_.two_sided ? 2 : 1); ++side) {
      SweepParams sweep = running(Role::kForward, side == 1);
      use_slots(sweep, key_slots_, plan_.slots_keys);
      if (whole_heads()) cut_finer(sweep, plan_.key_sums_per_segment, 1);
      if (launch_jointly(sweep)) continue;
      prefix_of_keys(side == 1);
      if (p_.state_kv_out != nullptr) sweep.store = StoreState::kFinal;
      launch(Role::kForward, Mode::kRun, sweep);
      if (p_.state_kv_out != nullptr) export_state(sweep, false, p_.state_kv_out, p_.state_z_out);
    }
  }

  void backward() {
    if (!plan_.scans) {
      full_backward();
      return;
    }
    const bool decay = g_->d_log_decay != nullptr && p_.log_decay != nullptr;
    const std::int64_t parts = p_.sequences * p_.heads * plan_.state_cut.count * gradient_slices();
    SweepParams last{};
    if (both_sides_) {  // states wait where the values' gradient will be
      sweep_both_sides(Role::kQueryGradient, g_->dv);
      last = sweep_both_sides(Role::kKeyGradient, g_->dv);
      if (decay) sum_decay(last);
      return;
    }
    for (int side = 0; side < (plan_.two_sided ? 2 : 1); ++side) {
      SweepParams sweep = running(Role::kQueryGradient, side == 1);
      if (!handed()) prefix_of_keys(side == 1);
      use_slots(sweep, key_slots_, plan_.slots_keys);
      if (decay) {
        sweep.decay_gradient = query_decay_ + (side + part_.number) * parts;
        if (g_->d_state_kv_out != nullptr) sweep.store = StoreState::kFinal;
      }
      launch(Role::kQueryGradient, Mode::kRun, sweep);
      last = sweep;
    }
    for (int side = 0; side < (plan_.two_sided ? 2 : 1); ++side) {
      // Against the scan: the first side's queries lie after a key, the second's before it.
      const bool reversed = side == 0;
      prefix_of_queries(reversed);
      for (const Role role : {Role::kKeyGradient, Role::kValueGradient}) {
        SweepParams sweep = running(role, reversed);
        sweep.strict = side == 1 ? 1 : 0;
        sweep.pass = pass_of(role, side);
        use_slots(sweep, query_slots_, plan_.slots_queries);
        const bool keys = role == Role::kKeyGradient;
        if (keys && decay) sweep.decay_gradient = key_decay_ + (side + part_.number) * parts;
        const bool wants_state = g_->d_state_kv_in != nullptr || (decay && p_.state_kv_in != nullptr);
        if (keys && wants_state) sweep.store = StoreState::kFinal;
        launch(role, Mode::kRun, sweep);
        if (keys && g_->d_state_kv_in != nullptr) {
          export_state(sweep, true, g_->d_state_kv_in, g_->d_state_z_in);
        }
      }
    }
    if (decay && part_.last()) sum_decay(last);
  }

 private:
  // Full attention with a decay in one sweep, after the states that lie after its pairs of chunks; these wait in a
  // tensor whose rows are written later.
  SweepParams sweep_both_sides(Role role, const View& waiting) {
    const bool of_queries = role == Role::kKeyGradient;
    SweepParams sweep = running(role, false);
    sweep.pass = SweepPass::kOnly;
    use_slots(sweep, of_queries ? query_slots_ : key_slots_, plan_.slots_keys);
    if (g_ != nullptr && g_->d_log_decay != nullptr) sweep.decay_gradient = of_queries ? key_decay_ : query_decay_;
    WarpgroupParams w = for_warpgroup(role, sweep);
    w.after = source(waiting, p_.value_dim, p_.dtype);
    w.after_extras = after_extras_;
    w.after_segments = after_slots_;
    launches_.add([&](cudaStream_t stream) { return launch_warpgroup_after_states(of_queries, w, stream); });
    if (sweep.segments > 1) {
      const StateParams scanned{&sweep, nullptr, nullptr, nullptr, nullptr, of_queries, false, after_slots_};
      launches_.add([&](cudaStream_t stream) { return launch_state_scan(scanned, stream); });
    }
    launches_.add([&](cudaStream_t stream) { return launch_warpgroup_both_sides(warpgroup_pass(role), w, stream); });
    return sweep;
  }

  void full_backward() {
    if (!handed()) sum_keys();
    const SweepParams keys = applied(Role::kKeyGradient, plan_.apply_cut_keys, query_slots_, plan_.slots_queries);
    if (warpgroup_ && narrow()) {  // the values' gradient comes with the keys'
      SweepParams queries = applied(Role::kQueryGradient, plan_.sum_cut_queries, key_slots_, plan_.slots_keys);
      queries.store = StoreState::kOfSegment;
      if (in_one_launch(plan_.sum_cut_queries, plan_.apply_cut_keys)) {
        launch_pair(Role::kQueryGradient, queries, Role::kKeyGradient, keys);
        return;
      }
      launch(Role::kQueryGradient, Mode::kApplyAndSum, queries);
    } else {
      launch(Role::kQueryGradient, Mode::kApply,
             applied(Role::kQueryGradient, plan_.apply_cut_queries, key_slots_, plan_.slots_keys));
      sum_queries();
    }
    if (plan_.sum_cut_queries.count > 1) add_up_queries();
    launch(Role::kKeyGradient, Mode::kApply, keys);
    launch(Role::kValueGradient, Mode::kApply,
           applied(Role::kValueGradient, plan_.apply_cut_keys, query_slots_, plan_.slots_queries));
  }

  // Sums over the keys go from the forward to the backward pass.
  bool handed() const { return plan_.hands_over && p_.key_sums != nullptr; }
  SweepPass pass_of(Role role, int side) const {
    if (!plan_.two_sided) return part_.pass_of(role);
    return side == 0 ? SweepPass::kFirstOfTwo : SweepPass::kSecondOfTwo;
  }

  SweepParams base(Role role) const { return sweep_params(p_, g_, role, row_scalar_); }

  void set_cut(SweepParams& s, const Segments& segments) const {
    s.segments = segments.count;
    s.segment_tokens = segments.tokens;
  }

  // A sweep with a running state over rows and columns together.
  SweepParams running(Role role, bool reversed) const {
    SweepParams s = base(role);
    set_cut(s, plan_.state_cut);
    s.precise = role == Role::kForward && p_.state_kv_out != nullptr ? 1 : 0;
    s.reversed = reversed ? 1 : 0;
    const bool second = plan_.two_sided && reversed;
    s.strict = second ? 1 : 0;
    s.pass = pass_of(role, second ? 1 : 0);
    return s;
  }

  // The sums that start the segments of a running sweep.
  void cut_finer(SweepParams& s, int finer, int slot_step) const {
    s.slot_step = slot_step;
    s.segments *= finer;
    s.segment_tokens /= finer;
  }

  void use_slots(SweepParams& s, float* slots, int count) const {
    s.states = slots;
    s.slots = count;
    s.total_slot = count - 1;
    s.slot_step = slots == key_slots_ ? plan_.key_sums_per_segment : plan_.sums_per_segment;
    const bool carried = s.states == key_slots_ ? p_.state_kv_in != nullptr : g_->d_state_kv_out != nullptr;
    s.initial = s.segments > 1 || carried ? InitialState::kOfSegment : InitialState::kZero;
  }

  void launch(Role role, Mode mode, const SweepParams& s) {
    if (warpgroup_ && !s.precise && warpgroup_has(mode)) {
      launch_on_warpgroup(role, mode, s);
      return;
    }
    launches_.add([&](cudaStream_t stream) {
      return launch_role(role, mode, p_.dtype, padded_features(features_of(p_, role)), s, stream);
    });
  }

  bool narrow() const { return p_.dim <= kNarrowDim && p_.value_dim <= kNarrowDim; }
  // Narrow heads of two sides that cannot have both in one sweep are the general sweeps'.
  bool warpgroup_has(Mode mode) const { return mode != Mode::kRun || !plan_.two_sided || !narrow(); }
  // Blocks beside each other in the sweeps that leave a part of the decay's gradient each.
  int gradient_slices() const {
    return both_sides_ || (warpgroup_ && warpgroup_has(Mode::kRun)) ? warpgroup_slices(p_.dim)
                                                                    : value_slices(p_.value_dim, p_.dim);
  }

  bool in_one_launch(const Segments& first, const Segments& second) const {
    return warpgroup_ && narrow() && first.count == 1 && second.count == 1;
  }

  WarpgroupPass warpgroup_pass(Role role) const {
    if (role == Role::kForward) return WarpgroupPass::kForward;
    if (role == Role::kQueryGradient) return WarpgroupPass::kQueries;
    return !narrow() && role == Role::kValueGradient ? WarpgroupPass::kValues : WarpgroupPass::kKeys;
  }

  void launch_on_warpgroup(Role role, Mode mode, const SweepParams& s) {
    if (narrow() && role == Role::kValueGradient && mode != Mode::kSum) return;  // came with the keys' gradient
    launches_.add([&](cudaStream_t stream) {
      return launch_warpgroup(warpgroup_pass(role), mode, narrow(), for_warpgroup(role, s), stream);
    });
  }

  // Whether blocks of the running forward sweep own whole heads of more than 64: its segments are as long as the sums'.
  bool whole_heads() const {
    return g_ == nullptr && warpgroup_ && !narrow() && p_.causal && p_.state_kv_out == nullptr &&
           part_.out == SweepPass::kOnly;
  }
  // Whether the forward sweep may have its sums and their scan in one launch with it.
  bool may_be_joint() const {
    const int blocks = plan_.state_cut.count;
    return g_ == nullptr && warpgroup_ && plan_.scans && !plan_.two_sided && !plan_.state_slots && blocks > 1 &&
           part_.out == SweepPass::kOnly && (!narrow() || blocks <= kMostJointBlocks);
  }
  // What the sums of a narrow head take there.
  std::int64_t joint_floats() const { return may_be_joint() && narrow() ? plan_.state_cut.count * kJointFloats : 0; }
  bool launch_jointly(const SweepParams& s) {
    if (!may_be_joint() || (!narrow() && !scans_in_pieces(s))) return false;
    WarpgroupParams w = for_warpgroup(Role::kForward, s);
    if (narrow()) {
      const JointCut cut = joint_cut(plan_.longest, s.segments);
      w.sweep.segment_tokens = cut.tokens;
      w.sweep.first_tokens = cut.first;
      w.sweep.states = joint_sums_;
      if (handed()) {
        w.kept = key_slots_;
        w.kept_tokens = plan_.state_cut.tokens;
      }
    }
    return launch_if_possible([&](cudaStream_t stream) { return launch_forward_jointly(narrow(), w, stream); });
  }
  // A launch that may find that it cannot serve, and gives nothing then. Whether it could.
  template <class Launch>
  bool launch_if_possible(Launch launch) {
    bool launched = false;
    launches_.add([&](cudaStream_t stream) {
      const std::optional<cudaError_t> status = launch(stream);
      launched = status.has_value();
      return status.value_or(cudaSuccess);
    });
    return launched;
  }

  void launch_pair(Role first_role, const SweepParams& first, Role second_role, const SweepParams& second) {
    launches_.add([&](cudaStream_t stream) {
      return launch_warpgroup_pair(warpgroup_pass(first_role), for_warpgroup(first_role, first),
                                   for_warpgroup(second_role, second), stream);
    });
  }

  WarpgroupParams for_warpgroup(Role role, const SweepParams& s) const {
    WarpgroupParams w = warpgroup_params(p_, g_, role, s);
    w.sums = query_slots_;
    w.sum_slots = plan_.slots_queries;
    w.meetings = meetings_;
    return w;
  }

  // The state of the keys before each segment of a running sweep.
  void prefix_of_keys(bool reversed) {
    SweepParams s = running(Role::kForward, reversed);
    const int finer = plan_.key_sums_per_segment;
    cut_finer(s, finer, whole_heads() ? 1 : finer);
    s.states = key_slots_;
    s.slots = plan_.slots_keys;
    if (s.segments == 1 && p_.state_kv_in == nullptr) return;
    if (p_.state_kv_in == nullptr && prefix_in_one_launch(Role::kForward, s)) return;
    if (s.segments > 1) sum_segments(Role::kForward, s);
    scan(s, false, p_.state_kv_in, p_.state_z_in, false);
  }

  void prefix_of_queries(bool reversed) {
    SweepParams s = running(Role::kValueGradient, reversed);
    cut_finer(s, plan_.sums_per_segment, plan_.sums_per_segment);
    s.states = query_slots_;
    s.slots = plan_.slots_queries;
    if (s.segments == 1 && g_->d_state_kv_out == nullptr) return;
    if (g_->d_state_kv_out == nullptr && prefix_in_one_launch(Role::kValueGradient, s)) return;
    if (s.segments > 1) sum_segments(Role::kValueGradient, s);
    scan(s, true, g_->d_state_kv_out, g_->d_state_z_out, false);
  }

  // Wide heads' blocks scan their sums in pieces of 16 bytes.
  static bool scans_in_pieces(const SweepParams& s) { return reinterpret_cast<std::uintptr_t>(s.states) % 16 == 0; }
  // Sums and their scan. Whether it can be done.
  bool prefix_in_one_launch(Role role, SweepParams s) {
    if (!warpgroup_ || narrow() || s.precise || !scans_in_pieces(s)) return false;
    s.initial = InitialState::kZero;
    return launch_if_possible([&](cudaStream_t stream) {
      return launch_warpgroup_prefix(warpgroup_pass(role), for_warpgroup(role, s), stream);
    });
  }

  void sum_segments(Role role, SweepParams s) {
    s.initial = InitialState::kZero;
    s.store = StoreState::kOfSegment;
    launch(role, Mode::kSum, s);
  }

  void scan(const SweepParams& s, bool gradient, const float* kv, const float* z, bool total) {
    const StateParams params{&s, kv, z, nullptr, nullptr, gradient, total, nullptr};
    launches_.add([&](cudaStream_t stream) { return launch_state_scan(params, stream); });
  }

  void export_state(const SweepParams& s, bool gradient, float* kv, float* z) {
    const StateParams params{&s, nullptr, nullptr, kv, z, gradient, false, nullptr};
    launches_.add([&](cudaStream_t stream) { return launch_state_export(params, stream); });
  }

  // Full attention without decay: one sum over all keys (or queries) serves every row.
  SweepParams summed(Role role, const Segments& segments, float* slots, int count) const {
    SweepParams s = base(role);
    set_cut(s, segments);
    s.frame = Frame::kColumns;
    s.states = slots;
    s.slots = count;
    s.store = StoreState::kOfSegment;
    return s;
  }
  SweepParams keys_to_sum() const { return summed(Role::kForward, plan_.sum_cut_keys, key_slots_, plan_.slots_keys); }
  SweepParams queries_to_sum() const {
    return summed(Role::kValueGradient, plan_.sum_cut_queries, query_slots_, plan_.slots_queries);
  }

  void sum_keys() {
    const SweepParams s = keys_to_sum();
    launch(Role::kForward, Mode::kSum, s);
    if (s.segments > 1) scan(s, false, nullptr, nullptr, true);
  }

  // Copies the totals out of the slots.
  void keep_key_sums() {
    const std::size_t bytes = static_cast<std::size_t>(plan_.slot_floats) * sizeof(float);
    const float* totals = key_slots_ + (plan_.slots_keys - 1) * plan_.slot_floats;
    launches_.add([&](cudaStream_t stream) {
      return cudaMemcpy2DAsync(p_.key_sums, bytes, totals, bytes * static_cast<std::size_t>(plan_.slots_keys), bytes,
                               static_cast<std::size_t>(p_.sequences * p_.heads), cudaMemcpyDeviceToDevice, stream);
    });
  }

  void sum_queries() { launch(Role::kValueGradient, Mode::kSum, queries_to_sum()); }

  // The sums of the queries' segments become their total.
  void add_up_queries() {
    SweepParams s = queries_to_sum();
    std::swap(s.q_length, s.k_length);  // the scan measures the side that was summed
    std::swap(s.cu_seqlens_q, s.cu_seqlens_k);
    scan(s, true, nullptr, nullptr, true);
  }

  // Rows against a finished sum.
  SweepParams applied(Role role, const Segments& segments, float* slots, int count) const {
    SweepParams s = base(role);
    set_cut(s, segments);
    s.pass = part_.pass_of(role);
    s.frame = Frame::kRows;
    s.states = slots;
    s.slots = count;
    s.total_slot = count - 1;
    s.initial = InitialState::kTotal;
    return s;
  }

  void sum_decay(const SweepParams& s) {
    DecayParams d{};
    d.sweep = &s;
    d.query_parts = query_decay_;
    d.key_parts = key_decay_;
    d.sweeps = plan_.two_sided && !both_sides_ ? 2 : part_.count;
    d.query_slices = d.key_slices = gradient_slices();
    d.query_segments = d.key_segments = plan_.state_cut.count;
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
    launches_.add([&](cudaStream_t stream) { return launch_decay_gradient(d, stream); });
  }

  const Problem& p_;
  const Gradients* g_;
  HeadPart part_;
  Plan plan_;
  Workspace workspace_;
  Launches launches_;
  bool warpgroup_;
  bool both_sides_;  // of full attention with a decay in one sweep
  float* after_extras_ = nullptr;
  float* after_slots_ = nullptr;
  float* key_slots_ = nullptr;
  float* joint_sums_ = nullptr;  // of narrow heads, in an order of their own
  float* query_slots_ = nullptr;
  unsigned* meetings_ = nullptr;
  float* row_scalar_ = nullptr;
  double* query_decay_ = nullptr;
  double* key_decay_ = nullptr;
  double* state_decay_ = nullptr;
};

}  // namespace cosformer::kernels::cuda
