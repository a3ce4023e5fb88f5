// Which compiled instance of the sweep kernel serves a launch.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

cudaError_t launch_role(Role role, Mode mode, DType dtype, int features, const SweepParams& params,
                        cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
