// Full attention with a decay, heads of up to 64.
#include "kernels/cuda/hopper/both_sides/kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_states_after_copied(bool of_queries, const HopperParams& params, cudaStream_t stream) {
  return of_queries ? launch_after_states<true, false>(params, stream)
                    : launch_after_states<false, false>(params, stream);
}
cudaError_t launch_both_sides_copied(HopperRole role, const HopperParams& params, cudaStream_t stream) {
  return launch_both_sides_of<false>(role, params, stream);
}

}  // namespace cosformer::kernels::cuda
