// The running forward pass of heads of 65 to 128.
#include "kernels/cuda/hopper_launch.h"
#include "kernels/cuda/warpgroup_launch.cuh"
#include "kernels/cuda/whole_joint.cuh"

namespace cosformer::kernels::cuda {
namespace {

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    whole_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) {
    set_up_whole<L>(shared);
    wgmma::publish_shared();
  }
  __syncthreads();
  run_occupations<L::kScoreRegisters, L::kValueRegisters>(
      [&] { WholeScores<L>(params, shared).run([](const auto& scores) { return scores.initial_sum(); }); },
      [&](int block) { WholeValues<L>(params, shared).run(block, [] {}); });
#endif
}

template <WholeFetch kFetch>
cudaError_t launch(const WarpgroupParams& params, cudaStream_t stream) {
  using Layout = WholeLayout<kFetch>;
  return launch_blocks(whole_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, params);
}

}  // namespace

cudaError_t launch_wide_in_registers(Fetch fetch, const WarpgroupParams& params, cudaStream_t stream) {
  WarpgroupParams whole = params;
  whole.sweep.slices = 1;
  if (fetch == Fetch::kTma) return launch<WholeFetch::kBoxes>(whole, stream);
  return fetch == Fetch::kMaskedCpAsync ? launch<WholeFetch::kMaskedCopies>(whole, stream)
                                        : launch<WholeFetch::kCopies>(whole, stream);
}

cudaError_t launch_wide_cooperatively(const WarpgroupParams& params, cudaStream_t stream) {
  using Layout = WholeLayout<WholeFetch::kBoxes>;
  static_assert(2 * (Layout::kSharedBytes + 1024) > 233472);  // choice.cc: a block fills a multiprocessor
  WarpgroupParams whole = params;
  whole.sweep.slices = 1;
  return launch_cooperative_blocks(whole_joint_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, whole);
}

}  // namespace cosformer::kernels::cuda
