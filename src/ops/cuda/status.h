// What the GPU answered, as torch's errors.
#pragma once

#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

namespace cosformer::ops {

inline void check(cudaError_t status, const char* what) {
  TORCH_CHECK(status == cudaSuccess, "cosformer: ", what, " failed on the GPU: ", cudaGetErrorString(status));
}

}  // namespace cosformer::ops
