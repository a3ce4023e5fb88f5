// The same with a key mask.
#include "kernels/cuda/hopper/both_sides/kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_states_after_masked(const HopperParams& params, cudaStream_t stream) {
  return launch_after_states<false, true>(params, stream);
}
cudaError_t launch_both_sides_masked(HopperRole role, const HopperParams& params, cudaStream_t stream) {
  return launch_both_sides_of<true>(role, params, stream);
}

}  // namespace cosformer::kernels::cuda
