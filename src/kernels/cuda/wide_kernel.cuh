// The kernel of wide heads and its launch.
#pragma once

#include "kernels/cuda/warpgroup_launch.cuh"
#include "kernels/cuda/wide_columns.cuh"
#include "kernels/cuda/wide_producer.cuh"
#include "kernels/cuda/wide_rows.cuh"

namespace cosformer::kernels::cuda {

template <class L>
__device__ __forceinline__ void set_up_barriers(unsigned char* shared) {
  const auto set_up = [&](int barrier, unsigned warpgroups) {
    barriers::set_up(shared_address(shared) + barrier, 128 * warpgroups);
  };
  for (int stage = 0; stage < L::kStages; ++stage) {
    set_up(L::full(stage), 1);
    set_up(L::free(stage), L::kIntra ? 2 : 1);
  }
  for (int copy = 0; copy < 2; ++copy) {
    set_up(L::published(copy), 1);
    set_up(L::returned(copy), 1);
  }
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    wide_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  if (threadIdx.x == 0) set_up_barriers<L>(shared);
  __syncthreads();
  const int warpgroup = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(L::kProducerRegisters));
    WideProducer<L>(params, shared).run();
    return;
  }
  if (L::kInter && warpgroup == 1) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(L::kRowRegisters));
    WideRows<L>(params, shared).run();
  } else if constexpr (L::kUpdate) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(L::kColumnRegisters));
    WideColumns<L>(params, shared).run();
  }
#endif
}

template <WarpgroupPass kPass, Mode kMode, bool kTwoSided, bool kMasked>
cudaError_t launch_wide_kernel(const WarpgroupParams& params, cudaStream_t stream) {
  using Layout = WideLayout<kPass, kMode, kTwoSided, kMasked>;
  return launch_blocks(wide_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, params);
}

template <WarpgroupPass kPass, bool kMasked>
cudaError_t launch_wide_mode(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  if (params.sweep.decay_gradient != nullptr) return cudaErrorInvalidValue;  // the general sweep's
  switch (mode) {
    case Mode::kRun:
      if (params.sweep.pass == SweepPass::kOnly) {
        return launch_wide_kernel<kPass, Mode::kRun, false, kMasked>(params, stream);
      }
      if constexpr (kPass == WarpgroupPass::kForward) {
        return launch_wide_kernel<kPass, Mode::kRun, true, kMasked>(params, stream);
      }
      break;
    case Mode::kApply: return launch_wide_kernel<kPass, Mode::kApply, false, kMasked>(params, stream);
    case Mode::kSum:
      if constexpr (kPass == WarpgroupPass::kForward || kPass == WarpgroupPass::kValues) {
        return launch_wide_kernel<kPass, Mode::kSum, false, kMasked>(params, stream);
      }
      break;
    case Mode::kApplyAndSum: break;  // narrow heads only
  }
  return cudaErrorInvalidValue;
}

template <bool kMasked>
cudaError_t launch_wide_pass(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_of_pass(pass,
                        [&]<WarpgroupPass kPass>() { return launch_wide_mode<kPass, kMasked>(mode, params, stream); });
}

}  // namespace cosformer::kernels::cuda
