// Heads of up to 128, a key mask.
#include "kernels/cuda/wide_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_masked(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_wide_pass<true>(pass, mode, params, stream);
}

cudaError_t launch_wide_scan_masked(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_wide_sums<true>(pass, params, stream);
}

}  // namespace cosformer::kernels::cuda
