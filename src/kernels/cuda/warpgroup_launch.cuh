// How the warpgroup kernels are launched.
#pragma once

#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda {

template <class Kernel, class... Params>
cudaError_t launch_blocks(Kernel kernel, int threads, int shared_bytes, cudaStream_t stream,
                          const WarpgroupParams& first, const Params&... others) {
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (status != cudaSuccess) return status;
  const SweepParams& p = first.sweep;
  const std::int64_t blocks = p.sequences * p.segments * p.heads * p.slices;
  if (blocks <= 0 || blocks > 0x7fffffffLL) return blocks == 0 ? cudaSuccess : cudaErrorInvalidValue;
  kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(first, others...);
  return cudaGetLastError();
}

// launch<kPass>() of the pass that was asked for.
template <class Launch>
cudaError_t launch_of_pass(WarpgroupPass pass, Launch launch) {
  using enum WarpgroupPass;
  switch (pass) {
    case kForward: return launch.template operator()<kForward>();
    case kQueries: return launch.template operator()<kQueries>();
    case kKeys: return launch.template operator()<kKeys>();
    case kValues: return launch.template operator()<kValues>();
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
