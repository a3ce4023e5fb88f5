// Heads of up to 128, a key mask.
#include "kernels/cuda/hopper/wide/kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_wide_masked(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream) {
  return launch_wide_role<true>(role, mode, params, stream);
}

cudaError_t launch_wide_scan_masked(HopperRole role, const HopperParams& params, cudaStream_t stream) {
  return launch_wide_sums<true>(role, params, stream);
}

}  // namespace cosformer::kernels::cuda
