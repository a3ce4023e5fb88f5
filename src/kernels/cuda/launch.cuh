// One way to launch a kernel.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace cosformer::kernels::cuda {

template <class... Params, class... Arguments>
cudaError_t launch_kernel(void (*kernel)(Params...), dim3 blocks, dim3 threads, std::size_t shared_bytes,
                          cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// For kernels that use the shared memory that is theirs by declaration.
template <class... Params, class... Arguments>
cudaError_t launch_kernel(void (*kernel)(Params...), dim3 blocks, dim3 threads, cudaStream_t stream,
                          const Arguments&... arguments) {
  return launch_kernel(kernel, blocks, threads, std::size_t{0}, stream, arguments...);
}

}  // namespace cosformer::kernels::cuda
