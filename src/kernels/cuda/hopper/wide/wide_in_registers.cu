// The running forward pass of heads of 65 to 128.
#include "kernels/cuda/hopper/launch.h"
#include "kernels/cuda/hopper/launch_blocks.cuh"
#include "kernels/cuda/hopper/wide/in_registers_cooperative.cuh"

namespace cosformer::kernels::cuda {
template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    wide_in_registers_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) {
    set_up_in_registers<L>(shared);
    wgmma::publish_shared();
  }
  __syncthreads();
  run_specialised<L::kScoreRegisters, L::kValueRegisters>(
      [&] { InRegistersScores<L>(params, shared).run([](const auto& scores) { return scores.initial_sum(); }); },
      [&](int block) { InRegistersValues<L>(params, shared).run(block, [] {}); });
#endif
}

namespace {

template <Fetch kFetch>
cudaError_t launch(const HopperParams& params, cudaStream_t stream) {
  using Layout = InRegistersLayout<kFetch>;
  return launch_blocks(wide_in_registers_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, params);
}

}  // namespace

cudaError_t launch_wide_in_registers(Fetch fetch, const HopperParams& params, cudaStream_t stream) {
  HopperParams whole = params;
  whole.sweep.slices = 1;
  if (fetch == Fetch::kTma) return launch<Fetch::kTma>(whole, stream);
  return fetch == Fetch::kMaskedCpAsync ? launch<Fetch::kMaskedCpAsync>(whole, stream)
                                        : launch<Fetch::kCpAsync>(whole, stream);
}

cudaError_t launch_wide_cooperatively(const HopperParams& params, cudaStream_t stream) {
  using Layout = InRegistersLayout<Fetch::kTma>;
  static_assert(2 * (Layout::kSharedBytes + 1024) > 233472);  // choice.cc: a block fills a multiprocessor
  HopperParams whole = params;
  whole.sweep.slices = 1;
  return launch_cooperative_blocks(wide_cooperative_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream,
                                   whole);
}

}  // namespace cosformer::kernels::cuda
