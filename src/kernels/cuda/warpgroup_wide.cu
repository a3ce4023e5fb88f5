// Heads of up to 128: two warpgroups.
#include "kernels/cuda/warpgroup_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_warpgroups(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_warpgroup_pass<2, WarpgroupFetch::kCopies>(pass, mode, params, stream);
}

}  // namespace cosformer::kernels::cuda
