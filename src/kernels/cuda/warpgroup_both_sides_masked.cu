// The same with a key mask.
#include "kernels/cuda/both_sides_launch.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_states_after_masked(const WarpgroupParams& params, cudaStream_t stream) {
  return launch_after_states<false, true>(params, stream);
}
cudaError_t launch_both_sides_masked(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_both_sides_of<true>(pass, params, stream);
}

}  // namespace cosformer::kernels::cuda
