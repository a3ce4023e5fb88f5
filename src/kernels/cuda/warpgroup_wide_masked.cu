// Heads of up to 128: two warpgroups, a key mask.
#include "kernels/cuda/warpgroup_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_warpgroups_masked(WarpgroupPass pass, Mode mode, const WarpgroupParams& params,
                                          cudaStream_t stream) {
  return launch_warpgroup_pass<2, WarpgroupFetch::kMaskedCopies>(pass, mode, params, stream);
}

}  // namespace cosformer::kernels::cuda
