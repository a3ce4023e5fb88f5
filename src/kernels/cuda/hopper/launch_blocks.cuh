// How the Hopper kernels are launched.
#pragma once

#include <atomic>

#include "kernels/cuda/hopper/params.h"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda {

template <class Kernel, class... Params>
cudaError_t launch_blocks(Kernel kernel, int threads, int shared_bytes, cudaStream_t stream, const HopperParams& first,
                          const Params&... others) {
  return launch_with_shared(nullptr, kernel, blocks_of(first.sweep), threads, shared_bytes, stream, first, others...);
}

// How many blocks of a kernel a multiprocessor of the current device holds at once; 0: unknown.
template <auto kKernel>
int blocks_at_once(int threads, int shared_bytes) {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices];  // zero: not asked yet
  int device = 0, blocks = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= kDevices) return 0;
  if (known[device] == 0 &&
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes) == cudaSuccess &&
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kKernel, threads,
                                                    static_cast<std::size_t>(shared_bytes)) == cudaSuccess) {
    known[device] = blocks;
  }
  return known[device];
}

// All blocks on the device at the same time, so that they may wait for each other; an error where it cannot hold them.
template <class Kernel>
cudaError_t launch_cooperative_blocks(Kernel kernel, int threads, int shared_bytes, cudaStream_t stream,
                                      const HopperParams& params) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  return launch_with_shared(&attribute, kernel, blocks_of(params.sweep), threads, shared_bytes, stream, params);
}

// launch<kRole>() of the role that was asked for.
template <class Launch>
cudaError_t launch_of_role(HopperRole role, Launch launch) {
  using enum HopperRole;
  switch (role) {
    case kForward: return launch.template operator()<kForward>();
    case kQueries: return launch.template operator()<kQueries>();
    case kKeys: return launch.template operator()<kKeys>();
    case kValues: return launch.template operator()<kValues>();
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
