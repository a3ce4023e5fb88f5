// The kernel of wide heads and its launch.
#pragma once

#include "kernels/cuda/warpgroup_launch.cuh"
#include "kernels/cuda/wide_columns.cuh"
#include "kernels/cuda/wide_producer.cuh"
#include "kernels/cuda/wide_rows.cuh"
#include "kernels/cuda/wide_sums.cuh"

namespace cosformer::kernels::cuda {

template <class L>
__device__ __forceinline__ void set_up_barriers(unsigned char* shared) {
  const auto set_up = [&](int barrier, unsigned warpgroups) {
    barriers::set_up(shared_address(shared) + barrier, 128 * warpgroups);
  };
  for (int stage = 0; stage < L::kStages; ++stage) {
    set_up(L::full(stage), 1);
    set_up(L::free(stage), L::kRuns ? 2 : 1);
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
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) set_up_barriers<L>(shared);
  __syncthreads();
  const int warpgroup = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    give_registers<L::kProducerRegisters>();
    WideProducer<L>(params, shared).run();
    return;
  }
  if (warpgroup == 1) {
    take_registers<L::kRowRegisters>();
    WideRows<L>(params, shared).run();
  } else if constexpr (L::kRuns) {
    take_registers<L::kColumnRegisters>();
    WideColumns<L>(params, shared).run();
  }
#endif
}

template <WarpgroupPass kPass, Mode kMode, WideExtra kExtra, bool kMasked>
cudaError_t launch_wide_kernel(const WarpgroupParams& params, cudaStream_t stream) {
  using Layout = WideLayout<kPass, kMode, kExtra, kMasked>;
  return launch_blocks(wide_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, params);
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    wide_sum_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) set_up_stages<L>(shared);
  __syncthreads();
  run_occupations<L::kProducerRegisters, L::kSumRegisters>(
      [&] { WideSumProducer<L>(params, shared).run(); }, [&](int block) { WideSummer<L>(params, shared).run(block); });
#endif
}

// A block sums all columns of its segment's state, whatever slices the sweeps have. Where asked to, blocks also scan
// the sums.
template <bool kOfQueries, bool kMasked>
cudaError_t launch_wide_sums(const WarpgroupParams& params, cudaStream_t stream) {
  using Layout = WideSumLayout<kOfQueries, kMasked>;
  WarpgroupParams whole = params;
  whole.sweep.slices = 1;
  const auto kernel = wide_sum_kernel<Layout>;
  if (params.scan_sums) {
    return launch_cooperative_blocks(kernel, Layout::kThreads, Layout::kSharedBytes, stream, whole);
  }
  return launch_blocks(kernel, Layout::kThreads, Layout::kSharedBytes, stream, whole);
}
template <bool kMasked>
cudaError_t launch_wide_sums(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  if (pass == WarpgroupPass::kForward) return launch_wide_sums<false, kMasked>(params, stream);
  if (pass == WarpgroupPass::kValues) return launch_wide_sums<true, false>(params, stream);
  return cudaErrorInvalidValue;
}

template <WarpgroupPass kPass, bool kMasked>
cudaError_t launch_wide_mode(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  using enum WarpgroupPass;
  const SweepParams& p = params.sweep;
  const auto launch = [&]<Mode kMode, WideExtra kExtra>() {
    return launch_wide_kernel<kPass, kMode, kExtra, kMasked>(params, stream);
  };
  const bool two_sided = p.pass != SweepPass::kOnly;
  switch (mode) {
    case Mode::kRun:
      if (p.decay_gradient != nullptr) {
        if constexpr (kPass == kQueries || kPass == kKeys) {
          return two_sided ? launch.template operator()<Mode::kRun, WideExtra::kTwoSidedDecayGradient>()
                           : launch.template operator()<Mode::kRun, WideExtra::kDecayGradient>();
        }
        break;
      }
      if (two_sided) return launch.template operator()<Mode::kRun, WideExtra::kTwoSided>();
      if constexpr (kPass == kForward) break;  // whole_layout.cuh
      return launch.template operator()<Mode::kRun, WideExtra::kNothing>();
    case Mode::kApply:
      return two_sided ? launch.template operator()<Mode::kApply, WideExtra::kTwoSided>()
                       : launch.template operator()<Mode::kApply, WideExtra::kNothing>();
    case Mode::kSum:          // launch_wide_sums
    case Mode::kApplyAndSum:  // narrow heads only
      break;
  }
  return cudaErrorInvalidValue;
}

template <bool kMasked>
cudaError_t launch_wide_pass(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  if (mode == Mode::kSum) {
    return launch_wide_sums<kMasked>(pass, params, stream);
  }
  return launch_of_pass(pass,
                        [&]<WarpgroupPass kPass>() { return launch_wide_mode<kPass, kMasked>(mode, params, stream); });
}

}  // namespace cosformer::kernels::cuda
