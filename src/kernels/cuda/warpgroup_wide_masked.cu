// Heads of up to 128: two warpgroups, a key mask.
#include "kernels/cuda/warpgroup_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_warpgroups_masked(WarpgroupPass pass, Mode mode, const WarpgroupParams& params,
                                          cudaStream_t stream) {
  switch (pass) {
    case WarpgroupPass::kForward:
      return launch_warpgroup_mode<WarpgroupPass::kForward, 2, WarpgroupFetch::kMaskedCopies>(mode, params, stream);
    case WarpgroupPass::kQueries:
      return launch_warpgroup_mode<WarpgroupPass::kQueries, 2, WarpgroupFetch::kMaskedCopies>(mode, params, stream);
    case WarpgroupPass::kKeys:
      return launch_warpgroup_mode<WarpgroupPass::kKeys, 2, WarpgroupFetch::kMaskedCopies>(mode, params, stream);
    case WarpgroupPass::kValues:
      return launch_warpgroup_mode<WarpgroupPass::kValues, 2, WarpgroupFetch::kMaskedCopies>(mode, params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
