// The running forward pass of heads of 65 to 128.
#include "kernels/cuda/warpgroup_launch.cuh"
#include "kernels/cuda/whole_scores.cuh"
#include "kernels/cuda/whole_values.cuh"

namespace cosformer::kernels::cuda {
namespace {

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    whole_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < L::kStages; ++stage) {
      barriers::set_up(shared_address(shared) + L::full(stage), 128);
      barriers::set_up(shared_address(shared) + L::free(stage), 2 * 128);
      barriers::set_up(shared_address(shared) + L::fetched(stage), 3);
    }
    wgmma::publish_shared();
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(L::kScoreRegisters));
    WholeScores<L>(params, shared).run();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(L::kValueRegisters));
    WholeValues<L>(params, shared).run(warpgroup - 1);
  }
#endif
}

template <WholeFetch kFetch>
cudaError_t launch(const WarpgroupParams& params, cudaStream_t stream) {
  using Layout = WholeLayout<kFetch>;
  return launch_blocks(whole_kernel<Layout>, Layout::kThreads, Layout::kSharedBytes, stream, params);
}

}  // namespace

cudaError_t launch_whole_heads(const WarpgroupParams& params, bool boxes, cudaStream_t stream) {
  WarpgroupParams whole = params;
  whole.sweep.slices = 1;
  using enum WholeFetch;
  if (boxes) return launch<kBoxes>(whole, stream);
  return params.sweep.key_mask != nullptr ? launch<kMaskedCopies>(whole, stream) : launch<kCopies>(whole, stream);
}

}  // namespace cosformer::kernels::cuda
