// Heads of up to 64: one warpgroup.
#include "kernels/cuda/warpgroup_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_warpgroup(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  switch (pass) {
    case WarpgroupPass::kForward:
      return launch_warpgroup_mode<WarpgroupPass::kForward, 1, WarpgroupFetch::kCopies>(mode, params, stream);
    case WarpgroupPass::kQueries:
      return launch_warpgroup_mode<WarpgroupPass::kQueries, 1, WarpgroupFetch::kCopies>(mode, params, stream);
    case WarpgroupPass::kKeys:
      return launch_warpgroup_mode<WarpgroupPass::kKeys, 1, WarpgroupFetch::kCopies>(mode, params, stream);
    case WarpgroupPass::kValues: break;  // comes with the keys
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_narrow_pair(WarpgroupPass first_pass, const WarpgroupParams& first, const WarpgroupParams& second,
                               cudaStream_t stream) {
  return launch_narrow_pair<WarpgroupFetch::kCopies>(first_pass, first, second, stream);
}

}  // namespace cosformer::kernels::cuda
