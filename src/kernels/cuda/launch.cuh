// One way to launch a kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

namespace cosformer::kernels::cuda {

template <class... Params, class... Arguments>
cudaError_t launch_configured(const cudaLaunchConfig_t& config, void (*kernel)(Params...),
                              const Arguments&... arguments) {
  const cudaError_t status = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (status != cudaSuccess) cudaGetLastError();  // the status tells it; whoever asks next is not told again
  return status;
}

// For kernels that use the shared memory that is theirs by declaration.
template <class... Params, class... Arguments>
cudaError_t launch_kernel(void (*kernel)(Params...), dim3 blocks, dim3 threads, cudaStream_t stream,
                          const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return launch_configured(config, kernel, arguments...);
}

// For those that are given it, as much as a block may have; nothing is launched where there are no blocks. The
// attribute may be null.
template <class... Params, class... Arguments>
cudaError_t launch_with_shared(cudaLaunchAttribute* attribute, void (*kernel)(Params...), std::int64_t blocks,
                               int threads, int shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (status != cudaSuccess) return status;
  if (blocks <= 0 || blocks > 0x7fffffffLL) return blocks == 0 ? cudaSuccess : cudaErrorInvalidValue;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = attribute;
  config.numAttrs = attribute == nullptr ? 0 : 1;
  return launch_configured(config, kernel, arguments...);
}

}  // namespace cosformer::kernels::cuda
