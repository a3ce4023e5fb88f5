// Heads of up to 128.
#include "kernels/cuda/hopper/wide/kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_copied(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream) {
  return launch_wide_role<false>(role, mode, params, stream);
}

cudaError_t launch_wide_scan_copied(HopperRole role, const HopperParams& params, cudaStream_t stream) {
  return launch_wide_sums<false>(role, params, stream);
}

}  // namespace cosformer::kernels::cuda
