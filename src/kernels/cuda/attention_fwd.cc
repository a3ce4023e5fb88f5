// The launches of the forward pass, in their order.
#include "kernels/cuda/attention_run.h"

namespace cosformer::kernels::cuda {

void AttentionRun::forward() {
  if (choice_.family == Family::kBothSides) {  // states wait where the results will be
    sweep_both_sides(Role::kForward, p_.out);
    return;
  }
  if (!choice_.plan.running) {
    full_forward();
    return;
  }
  for (int side = 0; side < sides(); ++side) {
    SweepParams sweep = running(Role::kForward, side == 1);
    use_key_slots(sweep);
    if (choice_.state_in_registers) cut_finer(sweep, choice_.plan.key_sums_per_segment, 1);
    if (choice_.keys == Launch::kCooperative) {
      launch_cooperatively(sweep);
      continue;
    }
    sum_keys_before_segments(side == 1);
    if (p_.state_kv_out != nullptr) sweep.store = StoreState::kFinal;
    launch(Role::kForward, Mode::kRun, sweep);
    if (p_.state_kv_out != nullptr) export_state(sweep, false, p_.state_kv_out, p_.state_z_out);
  }
}

// Full attention without a decay: the sum over all keys, then every row against it.
void AttentionRun::full_forward() {
  const SweepParams rows = against_key_sum(Role::kForward, choice_.plan.sweep_over_queries);
  if (choice_.keys == Launch::kSingle) {
    launch_single(Role::kForward, keys_to_sum(), Role::kForward, rows);
  } else {
    sum_keys();
    launch(Role::kForward, Mode::kApply, rows);
  }
  if (choice_.key_sum_floats > 0 && !choice_.keys_in_key_sums) keep_key_sum();
}

}  // namespace cosformer::kernels::cuda
