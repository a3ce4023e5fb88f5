// Heads of up to 64, forward passes whose rows come by TMA.
#include "kernels/cuda/hopper_launch.h"
#include "kernels/cuda/warpgroup_joint.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_tma(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_warpgroup_mode<WarpgroupPass::kForward, WarpgroupFetch::kBoxes>(mode, params, stream);
}

cudaError_t launch_narrow_pair_tma(const WarpgroupParams& first, const WarpgroupParams& second, cudaStream_t stream) {
  return launch_pair_of<WarpgroupPass::kForward, Mode::kSum, WarpgroupPass::kForward, WarpgroupFetch::kCopies,
                        WarpgroupFetch::kBoxes>(first, second, stream);
}

namespace {

template <WarpgroupExtra kExtra>
using NarrowCooperative =
    JointLaunch<WarpgroupSweep<WarpgroupPass::kForward, Mode::kSum, WarpgroupExtra::kNothing, WarpgroupFetch::kCopies>,
                WarpgroupSweep<WarpgroupPass::kForward, Mode::kRun, kExtra, WarpgroupFetch::kBoxes>>;

}  // namespace

cudaError_t launch_narrow_cooperatively(const WarpgroupParams& params, cudaStream_t stream) {
  return params.kept == nullptr ? NarrowCooperative<WarpgroupExtra::kNothing>::start(params, stream)
                                : NarrowCooperative<WarpgroupExtra::kKeepsStates>::start(params, stream);
}

int narrow_cooperative_blocks(bool keeps_states) {
  return keeps_states ? NarrowCooperative<WarpgroupExtra::kKeepsStates>::blocks_of_multiprocessor()
                      : NarrowCooperative<WarpgroupExtra::kNothing>::blocks_of_multiprocessor();
}

}  // namespace cosformer::kernels::cuda
