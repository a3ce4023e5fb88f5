// The same with a key mask.
#include "kernels/cuda/both_sides_launch.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_after_states_masked(const WarpgroupParams& params, cudaStream_t stream) {
  return launch_after_states<false, true>(params, stream);
}
cudaError_t launch_narrow_both_sides_masked(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_both_sides<true>(pass, params, stream);
}

}  // namespace cosformer::kernels::cuda
