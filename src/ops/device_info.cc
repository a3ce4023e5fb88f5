#include "ops/device_info.h"

#include <fmt/core.h>
#include <torch/cuda.h>

#ifdef COSFORMER_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace cosformer::ops {

bool has_cuda_kernels() {
#ifdef COSFORMER_WITH_CUDA
  return true;
#else
  return false;
#endif
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  const auto count = static_cast<int>(torch::cuda::is_available() ? torch::cuda::device_count() : 0);
  for (int device = 0; device < count; ++device) {
#ifdef COSFORMER_WITH_CUDA
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
      names.emplace_back(properties.name);
      continue;
    }
#endif
    names.push_back(fmt::format("GPU {}", device));
  }
  return names;
}

}  // namespace cosformer::ops
