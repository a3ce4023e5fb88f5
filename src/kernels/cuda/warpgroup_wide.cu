// Heads of up to 128.
#include "kernels/cuda/wide_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_warpgroups(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_wide_pass<false>(pass, mode, params, stream);
}

std::optional<cudaError_t> launch_wide_prefix(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_wide_sums<false>(pass, params, stream);
}

}  // namespace cosformer::kernels::cuda
