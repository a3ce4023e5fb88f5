// Heads of up to 64: one warpgroup.
#include "kernels/cuda/hopper/narrow/kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_copied(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream) {
  return launch_narrow_role<Fetch::kCpAsync>(role, mode, params, stream);
}

cudaError_t launch_narrow_single_copied(HopperRole first_role, const HopperParams& first, const HopperParams& second,
                                        cudaStream_t stream) {
  return launch_narrow_single_of_role<Fetch::kCpAsync>(first_role, first, second, stream);
}

}  // namespace cosformer::kernels::cuda
