// Heads of up to 128.
#include "kernels/cuda/wide_kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_copied(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_wide_pass<false>(pass, mode, params, stream);
}

cudaError_t launch_wide_scan_copied(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_wide_sums<false>(pass, params, stream);
}

}  // namespace cosformer::kernels::cuda
