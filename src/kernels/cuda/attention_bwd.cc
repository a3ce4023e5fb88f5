// The launches of the backward pass, in their order.
#include "kernels/cuda/attention_run.h"

namespace cosformer::kernels::cuda {

void AttentionRun::backward() {
  if (!choice_.plan.running) {
    full_backward();
    return;
  }
  SweepParams last{};
  if (choice_.family == Family::kBothSides) {  // states wait where the values' gradient will be
    sweep_both_sides(Role::kQueryGradient, g_->dv);
    last = sweep_both_sides(Role::kKeyGradient, g_->dv);
  } else {
    backward_over_queries(last);
    backward_over_keys();
  }
  if (decay_gradient() && part_.last()) sum_decay(last);
}

// The queries' gradient, from the states of the keys.
void AttentionRun::backward_over_queries(SweepParams& last) {
  for (int side = 0; side < sides(); ++side) {
    SweepParams sweep = running(Role::kQueryGradient, side == 1);
    sum_keys_before_segments(side == 1);
    use_key_slots(sweep);
    if (decay_gradient()) {
      sweep.decay_gradient = query_decay_ + (side + part_.number) * decay_parts();
      if (g_->d_state_kv_out != nullptr) sweep.store = StoreState::kFinal;
    }
    launch(Role::kQueryGradient, Mode::kRun, sweep);
    last = sweep;
  }
}

// The keys' and the values' gradients, from the states of the queries.
void AttentionRun::backward_over_keys() {
  for (int side = 0; side < sides(); ++side) {
    // Against the scan: the first side's queries lie after a key, the second's before it.
    const bool reversed = side == 0;
    sum_queries_before_segments(reversed);
    for (const Role role : {Role::kKeyGradient, Role::kValueGradient}) {
      const bool keys = role == Role::kKeyGradient;
      if (!keys && choice_.family == Family::kNarrow) continue;  // came with the keys' gradient
      SweepParams sweep = running(role, reversed);
      sweep.strict = side == 1 ? 1 : 0;
      sweep.contribution = contribution_of(role, side);
      use_query_slots(sweep);
      if (keys && decay_gradient()) sweep.decay_gradient = key_decay_ + (side + part_.number) * decay_parts();
      const bool wants_state = g_->d_state_kv_in != nullptr || (decay_gradient() && p_.state_kv_in != nullptr);
      if (keys && wants_state) sweep.store = StoreState::kFinal;
      launch(role, Mode::kRun, sweep);
      if (keys && g_->d_state_kv_in != nullptr) export_state(sweep, true, g_->d_state_kv_in, g_->d_state_z_in);
    }
  }
}

// Full attention without a decay.
void AttentionRun::full_backward() {
  const Plan& plan = choice_.plan;
  if (choice_.keys != Launch::kSingle) sum_keys();
  const SweepParams keys = against_query_sum(Role::kKeyGradient, plan.sweep_over_keys);
  if (choice_.family == Family::kNarrow) {  // the values' gradient comes with the keys'
    SweepParams queries = against_key_sum(Role::kQueryGradient, plan.sum_queries);
    queries.store = StoreState::kOfSegment;
    if (choice_.queries == Launch::kSingle) {
      launch_single(Role::kQueryGradient, queries, Role::kKeyGradient, keys);
      return;
    }
    launch(Role::kQueryGradient, Mode::kApplyAndSum, queries);
  } else {
    launch(Role::kQueryGradient, Mode::kApply, against_key_sum(Role::kQueryGradient, plan.sweep_over_queries));
    launch(Role::kValueGradient, Mode::kSum, queries_to_sum());
  }
  if (choice_.queries == Launch::kSegmentScan) add_up_queries();
  launch(Role::kKeyGradient, Mode::kApply, keys);
  if (choice_.family == Family::kNarrow) return;
  launch(Role::kValueGradient, Mode::kApply, against_query_sum(Role::kValueGradient, plan.sweep_over_keys));
}

}  // namespace cosformer::kernels::cuda
