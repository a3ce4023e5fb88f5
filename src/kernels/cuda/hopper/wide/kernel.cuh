// The kernel of wide heads and its launch.
#pragma once

#include "kernels/cuda/hopper/launch_blocks.cuh"
#include "kernels/cuda/hopper/wide/columns.cuh"
#include "kernels/cuda/hopper/wide/producer.cuh"
#include "kernels/cuda/hopper/wide/rows.cuh"
#include "kernels/cuda/hopper/wide/sums.cuh"

namespace cosformer::kernels::cuda {

template <class L>
__device__ __forceinline__ void set_up_barriers(unsigned char* shared) {
  const auto set_up = [&](int barrier, unsigned warpgroups) {
    mbarrier::init(shared_address(shared) + barrier, 128 * warpgroups);
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
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks) wide_kernel(const __grid_constant__ HopperParams params) {
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

template <HopperRole kRole, Mode kMode, WideExtra kExtra, bool kMasked>
cudaError_t launch_wide_kernel(const HopperParams& params, cudaStream_t stream) {
  using Layout = WideLayout<kRole, kMode, kExtra, kMasked>;
  return launch_blocks(wide_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, params);
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    wide_sum_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) set_up_stages<L>(shared);
  __syncthreads();
  run_specialised<L::kProducerRegisters, L::kSumRegisters>(
      [&] { WideSumProducer<L>(params, shared).run(); }, [&](int block) { WideSummer<L>(params, shared).run(block); });
#endif
}

// A block sums all columns of its segment's state, whatever slices the sweeps have. Where asked to, blocks also scan
// the sums.
template <bool kOfQueries, bool kMasked>
cudaError_t launch_wide_sums(const HopperParams& params, cudaStream_t stream) {
  using Layout = WideSumLayout<kOfQueries, kMasked>;
  HopperParams whole = params;
  whole.sweep.slices = 1;
  const auto kernel = wide_sum_kernel<Layout>;
  if (params.scan_sums) {
    return launch_cooperative_blocks(kernel, Layout::kThreads, Layout::kSharedBytes, stream, whole);
  }
  return launch_blocks(kernel, Layout::kThreads, Layout::kSharedBytes, stream, whole);
}
template <bool kMasked>
cudaError_t launch_wide_sums(HopperRole role, const HopperParams& params, cudaStream_t stream) {
  if (role == HopperRole::kForward) return launch_wide_sums<false, kMasked>(params, stream);
  if (role == HopperRole::kValues) return launch_wide_sums<true, false>(params, stream);
  return cudaErrorInvalidValue;
}

template <HopperRole kRole, bool kMasked>
cudaError_t launch_wide_mode(Mode mode, const HopperParams& params, cudaStream_t stream) {
  using enum HopperRole;
  const SweepParams& p = params.sweep;
  const auto launch = [&]<Mode kMode, WideExtra kExtra>() {
    return launch_wide_kernel<kRole, kMode, kExtra, kMasked>(params, stream);
  };
  const bool two_sided = p.contribution != Contribution::kOnly;
  switch (mode) {
    case Mode::kRun:
      if (p.decay_gradient != nullptr) {
        if constexpr (kRole == kQueries || kRole == kKeys) {
          return two_sided ? launch.template operator()<Mode::kRun, WideExtra::kTwoSidedDecayGradient>()
                           : launch.template operator()<Mode::kRun, WideExtra::kDecayGradient>();
        }
        break;
      }
      if (two_sided) return launch.template operator()<Mode::kRun, WideExtra::kTwoSided>();
      if constexpr (kRole == kForward) break;  // in_registers_layout.cuh
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
cudaError_t launch_wide_role(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream) {
  if (mode == Mode::kSum) {
    return launch_wide_sums<kMasked>(role, params, stream);
  }
  return launch_of_role(role,
                        [&]<HopperRole kRole>() { return launch_wide_mode<kRole, kMasked>(mode, params, stream); });
}

}  // namespace cosformer::kernels::cuda
