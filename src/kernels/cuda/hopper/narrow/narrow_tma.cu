// Heads of up to 64, forward passes whose rows come by TMA.
#include "kernels/cuda/hopper/launch.h"
#include "kernels/cuda/hopper/narrow/cooperative.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_tma(Mode mode, const HopperParams& params, cudaStream_t stream) {
  return launch_narrow_mode<HopperRole::kForward, Fetch::kTma>(mode, params, stream);
}

cudaError_t launch_narrow_single_tma(const HopperParams& first, const HopperParams& second, cudaStream_t stream) {
  return launch_narrow_single_of<HopperRole::kForward, Mode::kSum, HopperRole::kForward, Fetch::kCpAsync, Fetch::kTma>(
      first, second, stream);
}

namespace {

template <NarrowExtra kExtra>
using NarrowCooperative =
    CooperativeLaunch<NarrowSweep<HopperRole::kForward, Mode::kSum, NarrowExtra::kNothing, Fetch::kCpAsync>,
                      NarrowSweep<HopperRole::kForward, Mode::kRun, kExtra, Fetch::kTma>>;

}  // namespace

cudaError_t launch_narrow_cooperatively(const HopperParams& params, cudaStream_t stream) {
  return params.kept == nullptr ? NarrowCooperative<NarrowExtra::kNothing>::start(params, stream)
                                : NarrowCooperative<NarrowExtra::kKeepsStates>::start(params, stream);
}

int narrow_cooperative_blocks(bool keeps_states) {
  return keeps_states ? NarrowCooperative<NarrowExtra::kKeepsStates>::blocks_of_multiprocessor()
                      : NarrowCooperative<NarrowExtra::kNothing>::blocks_of_multiprocessor();
}

}  // namespace cosformer::kernels::cuda
