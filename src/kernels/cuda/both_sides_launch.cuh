// How the kernels of full attention with a decay are launched: a block for each segment of a head.
#pragma once

#include "kernels/cuda/after_states.cuh"
#include "kernels/cuda/both_sides_producer.cuh"
#include "kernels/cuda/both_sides_rows.cuh"
#include "kernels/cuda/warpgroup_launch.cuh"

namespace cosformer::kernels::cuda {

template <class L>
__device__ __forceinline__ void set_up_stages(unsigned char* shared) {
  for (int stage = 0; stage < L::kStages; ++stage) {
    barriers::set_up(shared_address(shared) + L::full(stage), 128);
    barriers::set_up(shared_address(shared) + L::free(stage), 2 * 128);
  }
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    after_states_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  if (threadIdx.x == 0) set_up_stages<L>(shared);
  __syncthreads();
  const int warpgroup = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(L::kProducerRegisters));
    AfterProducer<L>(params, shared).run();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(L::kSumRegisters));
    AfterSummer<L>(params, shared).run(warpgroup - 1);
  }
#endif
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    both_sides_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  if (threadIdx.x == 0) {
    set_up_stages<L>(shared);
    barriers::set_up(shared_address(shared) + L::own_full(), 128);
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(L::kProducerRegisters));
    BothSidesProducer<L>(params, shared).run();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(L::kRowRegisters));
    BothSidesRows<L>(params, shared).run(warpgroup - 1);
  }
#endif
}

template <bool kOfQueries, bool kMasked, bool kSegments>
cudaError_t launch_after_states_of(const WarpgroupParams& params, cudaStream_t stream) {
  using L = AfterLayout<kOfQueries, kMasked, kSegments>;
  return launch_blocks(after_states_kernel<L>, L::kThreads, L::kSharedBytes, stream, params);
}

template <bool kOfQueries, bool kMasked>
cudaError_t launch_after_states(const WarpgroupParams& params, cudaStream_t stream) {
  return params.sweep.segments > 1 ? launch_after_states_of<kOfQueries, kMasked, true>(params, stream)
                                   : launch_after_states_of<kOfQueries, kMasked, false>(params, stream);
}

template <bool kMasked>
cudaError_t launch_both_sides(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_of_pass(pass, [&]<WarpgroupPass kPass>() {
    if constexpr (kPass == WarpgroupPass::kValues) {
      return cudaErrorInvalidValue;  // comes with the keys
    } else {
      using L = BothSidesLayout<kPass, kMasked>;
      return launch_blocks(both_sides_kernel<L>, L::kThreads, L::kSharedBytes, stream, params);
    }
  });
}

}  // namespace cosformer::kernels::cuda
