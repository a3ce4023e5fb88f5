// Heads of up to 64: one warpgroup, a key mask.
#include "kernels/cuda/warpgroup_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_masked(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_narrow_pass<WarpgroupFetch::kMaskedCopies>(pass, mode, params, stream);
}

cudaError_t launch_narrow_pair_masked(WarpgroupPass first_pass, const WarpgroupParams& first,
                                      const WarpgroupParams& second, cudaStream_t stream) {
  return launch_narrow_pair_of_pass<WarpgroupFetch::kMaskedCopies>(first_pass, first, second, stream);
}

}  // namespace cosformer::kernels::cuda
