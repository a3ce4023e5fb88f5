// A problem, or a part of one, on its way through the kernels: what the choice says becomes launches in their order.
// Nothing is decided here.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/choice.h"
#include "kernels/cuda/hopper/params.h"
#include "kernels/cuda/plan/parts.h"
#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

class AttentionRun {
 public:
  AttentionRun(const Problem& problem, const Gradients* gradients, const Choice& choice, const HeadPart& part,
               void* memory, cudaStream_t stream);

  void forward();   // attention_fwd.cc
  void backward();  // attention_bwd.cc

  cudaError_t status() const { return status_; }
  // The driver could not describe a tensor to TMA.
  bool refused_by_driver() const { return refused_by_driver_; }

 private:
  // --- The parameters of sweeps.

  // Rows and columns together, with a state that runs along.
  SweepParams running(Role role, bool reversed) const;
  // The sums that its segments start from, cut finer; `slot_step` slots from one to the next.
  static void cut_finer(SweepParams& sweep, int finer, int slot_step);
  void use_key_slots(SweepParams& sweep) const;
  void use_query_slots(SweepParams& sweep) const;
  // Full attention without a decay: the sum over one side, and rows against a finished sum.
  SweepParams keys_to_sum() const;
  SweepParams queries_to_sum() const;
  SweepParams against_key_sum(Role role, const Segments& segments) const;
  SweepParams against_query_sum(Role role, const Segments& segments) const;
  Contribution contribution_of(Role role, int side) const;
  HopperParams for_hopper(Role role, const SweepParams& sweep) const;
  HopperRole hopper_role(Role role) const;

  // --- Launches. The first failure makes everything after it a no-op.

  template <class Launch>
  void add(Launch launch) {
    if (status_ == cudaSuccess) status_ = launch(stream_);
  }
  void launch(Role role, Mode mode, const SweepParams& sweep);
  // A sum, then rows against it, in one launch.
  void launch_single(Role first_role, const SweepParams& first, Role second_role, const SweepParams& second);
  // Sums, their scan and the forward sweep in one launch.
  void launch_cooperatively(const SweepParams& sweep);
  // What lies after pairs of chunks, then the sweep that meets both sides. The states after pairs wait in a tensor
  // whose rows are written later.
  SweepParams sweep_both_sides(Role role, const View& waiting);
  // The state before each segment of a running sweep.
  void sum_keys_before_segments(bool reversed);
  void sum_queries_before_segments(bool reversed);
  void sum_before_segments(Launch how, Role role, const SweepParams& sums, bool gradient, const float* kv,
                           const float* z);
  void scan(const SweepParams& sums, bool gradient, const float* kv, const float* z, bool total);
  void export_state(const SweepParams& sweep, bool gradient, float* kv, float* z);
  void sum_keys();
  void keep_key_sum();
  void add_up_queries();
  void sum_decay(const SweepParams& sweep);
  // Of a forward pass whose rows come by TMA: describes them. Whether the driver could.
  bool describe_rows(HopperParams& params, bool columns);

  void full_forward();
  void full_backward();
  void backward_over_queries(SweepParams& last);
  void backward_over_keys();

  std::int64_t heads() const { return p_.sequences * p_.heads; }
  // Blocks that leave a part of the decay's gradient each.
  std::int64_t decay_parts() const { return heads() * choice_.plan.sweep.count * decay_slices(p_, choice_); }
  bool decay_gradient() const { return g_ != nullptr && g_->d_log_decay != nullptr && p_.log_decay != nullptr; }
  bool on_hopper() const { return choice_.family != Family::kGeneral; }
  int sides() const { return choice_.plan.two_sided ? 2 : 1; }

  const Problem& p_;
  const Gradients* g_;
  const Choice& choice_;
  HeadPart part_;
  cudaStream_t stream_;
  cudaError_t status_ = cudaSuccess;
  bool refused_by_driver_ = false;

  float *row_scalar_, *key_slots_, *query_slots_, *cooperative_sums_, *after_extras_, *after_segments_;
  double *query_decay_, *key_decay_, *state_decay_;
  unsigned* segment_flags_;
};

}  // namespace cosformer::kernels::cuda
