// How the kernels of full attention with a decay are launched: a block for each segment of a head.
#pragma once

#include "kernels/cuda/hopper/both_sides/producer.cuh"
#include "kernels/cuda/hopper/both_sides/rows.cuh"
#include "kernels/cuda/hopper/both_sides/states_after.cuh"
#include "kernels/cuda/hopper/launch_blocks.cuh"

namespace cosformer::kernels::cuda {

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    states_after_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) set_up_stages<L>(shared);
  __syncthreads();
  run_specialised<L::kProducerRegisters, L::kSumRegisters>([&] { AfterProducer<L>(params, shared).run(); },
                                                           [&](int part) { AfterSummer<L>(params, shared).run(part); });
#endif
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    both_sides_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) {
    set_up_stages<L>(shared);
    mbarrier::init(shared_address(shared) + L::own_full(), 128);
  }
  __syncthreads();
  run_specialised<L::kProducerRegisters, L::kRowRegisters>(
      [&] { BothSidesProducer<L>(params, shared).run(); },
      [&](int half) { BothSidesRows<L>(params, shared).run(half); });
#endif
}

template <bool kOfQueries, bool kMasked, bool kSegments>
cudaError_t launch_after_states_of(const HopperParams& params, cudaStream_t stream) {
  using L = AfterLayout<kOfQueries, kMasked, kSegments>;
  return launch_blocks(states_after_kernel<L>, L::kThreads, L::kSharedBytes, stream, params);
}

template <bool kOfQueries, bool kMasked>
cudaError_t launch_after_states(const HopperParams& params, cudaStream_t stream) {
  return params.sweep.segments > 1 ? launch_after_states_of<kOfQueries, kMasked, true>(params, stream)
                                   : launch_after_states_of<kOfQueries, kMasked, false>(params, stream);
}

template <bool kMasked>
cudaError_t launch_both_sides_of(HopperRole role, const HopperParams& params, cudaStream_t stream) {
  return launch_of_role(role, [&]<HopperRole kRole>() {
    if constexpr (kRole == HopperRole::kValues) {
      return cudaErrorInvalidValue;  // comes with the keys
    } else {
      using L = BothSidesLayout<kRole, kMasked>;
      return launch_blocks(both_sides_kernel<L>, L::kThreads, L::kSharedBytes, stream, params);
    }
  });
}

}  // namespace cosformer::kernels::cuda
