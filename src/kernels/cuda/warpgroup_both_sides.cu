// Full attention with a decay, heads of up to 64.
#include "kernels/cuda/both_sides_launch.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_states_after_copied(bool of_queries, const WarpgroupParams& params, cudaStream_t stream) {
  return of_queries ? launch_after_states<true, false>(params, stream)
                    : launch_after_states<false, false>(params, stream);
}
cudaError_t launch_both_sides_copied(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_both_sides_of<false>(pass, params, stream);
}

}  // namespace cosformer::kernels::cuda
