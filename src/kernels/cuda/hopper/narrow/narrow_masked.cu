// Heads of up to 64: one warpgroup, a key mask.
#include "kernels/cuda/hopper/narrow/kernel.cuh"

namespace cosformer::kernels::cuda {

cudaError_t launch_narrow_masked(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream) {
  return launch_narrow_role<Fetch::kMaskedCpAsync>(role, mode, params, stream);
}

cudaError_t launch_narrow_single_masked(HopperRole first_role, const HopperParams& first, const HopperParams& second,
                                        cudaStream_t stream) {
  return launch_narrow_single_of_role<Fetch::kMaskedCpAsync>(first_role, first, second, stream);
}

}  // namespace cosformer::kernels::cuda
