// The warpgroup sweep's loop and its launch.
#pragma once

#include <algorithm>

#include "kernels/cuda/warpgroup_output.cuh"

namespace cosformer::kernels::cuda {

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, bool kMasked>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kMasked>::compute(int stage,
                                                                                                 int position) {
  const std::uint32_t x = x_tile(stage);
  float error[2] = {1.0F, 1.0F}, scale[2] = {1.0F, 1.0F};
  A weights[4] = {};
  if constexpr (!kInter) {
    update(stage);
  } else if constexpr (kFeatureRows) {
    float out[kForward ? 9 : 8][4];
    value_rows_product(stage, x, weights, out);
    if constexpr (kUpdate) update(stage);
    wgmma::wait<kUpdate ? 1 : 0>();
    wgmma::settle(out);
    finish_rows(stage, x, 0U, kForward ? w.first : w.second, position, scale, out);
  } else {
    const std::uint32_t own = kBoth ? x + kTile : (kRowSums ? feature_tile(stage) : own_tile());
    {
      float out[8][4];
      if constexpr (kQueries) query_errors(stage, position, error, scale);
      if (kKeys && half != 0) error[0] = error[1] = 0.0F;
      if constexpr (kDecayGradient && kHasOwn) {
        wait_copies<1>();
        __syncwarp();
      }
      feature_rows_product(stage, x, own, position, error, scale, weights, out);
      if constexpr (kUpdate && !kBoth && !kDecayGradient) update(stage);
      wgmma::wait<kUpdate && !kBoth && !kRowSums ? 1 : 0>();
      wgmma::settle(out);
      if constexpr (kRowSums) {
        wgmma::settle(state[0]);
        wgmma::settle(state[1]);
        __syncthreads();  // results go where other warps' sums have been reading
      }
      if constexpr (kHasOwn) {
        wait_copies<1>();
        __syncwarp();
      }
      finish_rows(stage, x, own, w.first, position, scale, out);
    }
    if constexpr (kBoth) {
      float out[8][4];
      value_rows_product(stage, x + kTile, weights, out);
      if constexpr (kUpdate) update(stage);
      wgmma::wait<kUpdate ? 1 : 0>();
      wgmma::settle(out);
      finish_rows(stage, x + kTile, 0U, w.second, position, scale, out);
    }
  }
  if constexpr (kUpdate) {
    wgmma::wait<0>();
    wgmma::settle(state[0]);
    wgmma::settle(state[1]);
  }
}

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, bool kMasked>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kMasked>::run() {
  locate();
  if (!kInter && p.frame == Frame::kBoth && segment + p.slot_step >= p.segments) return;  // nothing starts after them
  const int segment_begin = segment * p.segment_tokens;
  int position = max(segment_begin, lead / kChunk * kChunk);
  int end = min(segment_begin + p.segment_tokens, padded);
  if (!reversed) end = min(end, (frame_length + kChunk - 1) / kChunk * kChunk);
  const bool last_segment =
      segment_begin < padded ? segment_begin + p.segment_tokens >= padded : segment == 0 && padded == 0;

  start_rows(position);
  if (position < end) {
    fetch(0, position);
    fetch_own(position);
  }
  load_state();
  if constexpr (kIntra) build_distances();
  clear_blocks();
  if constexpr (kInter) publish_state();
  if constexpr (kRowSums) clear_state();
  if constexpr (!kUpdate) {  // warps go their own ways from here on, but for the halves' exchanges
    wgmma::publish_shared();
    __syncthreads();
  }
  int first = -1, last = -1, stage = 0;
  bool first_chunk = true;
  for (; position < end; position += kChunk) {
    if constexpr (kUpdate) {
      const int chunk_first = max(lead - position, 0);
      const int chunk_last = reversed ? kChunk : min(kChunk, frame_length - position);
      if (chunk_first != first || chunk_last != last) {
        first = chunk_first;
        last = chunk_last;
        set_powers(first, last);
      }
    }
    set_turns(position, first_chunk);
    first_chunk = false;
    wait_copies<kHasOwn ? 1 : 0>();
    prepare(stage, position);
    if constexpr (kUpdate) wgmma::publish_shared();
    if constexpr (kUpdate || kHalves == 2) __syncthreads();
    const bool more = position + kChunk < end;
    if (more) {
      fetch(stage ^ 1, position + kChunk);
    } else {
      commit_copies();
    }
    compute(stage, position);
    if (kHasOwn) {
      if (more) {
        fetch_own(position + kChunk);
      } else {
        commit_copies();
      }
    }
    if constexpr ((kUpdate && !kRowSums) || kHalves == 2) __syncthreads();
    if constexpr (kIntra) publish_state();
    stage ^= 1;
  }
  if (p.store == StoreState::kOfSegment) store_state(segment);
  if (p.store == StoreState::kFinal && last_segment) store_state(p.total_slot);
  if constexpr (kDecayGradient) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) decay_sum += __shfl_xor_sync(0xffffffffU, decay_sum, offset);
    double* sums = reinterpret_cast<double*>(array(kRowTurns));
    __syncthreads();
    if (lane == 0) sums[warp] = decay_sum;
    __syncthreads();
    if (threadIdx.x == 0 && p.decay_gradient != nullptr)
      p.decay_gradient[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
  }
}

template <class Sweep>
__global__ void __launch_bounds__(Sweep::kThreads, Sweep::kMinBlocks)
    warpgroup_kernel(const __grid_constant__ WarpgroupParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  Sweep(params, shared).run();
#endif
}

// Short sequences: a block sums all of one side, then takes that sum to all rows of the other. Nobody waits in between
// for other blocks to finish.
template <class First, class Second>
__global__ void __launch_bounds__(First::kThreads, std::min(First::kMinBlocks, Second::kMinBlocks))
    warpgroup_pair_kernel(const __grid_constant__ WarpgroupParams first,
                          const __grid_constant__ WarpgroupParams second) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char shared[];
  First(first, shared).run();
  __syncthreads();  // the sum is in memory, and nobody reads the first one's tiles any more
  Second(second, shared).run();
#endif
}

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

template <class Sweep>
cudaError_t launch_warpgroup_kernel(const WarpgroupParams& params, cudaStream_t stream) {
  return launch_blocks(warpgroup_kernel<Sweep>, Sweep::kThreads, Sweep::kSharedBytes, stream, params);
}

template <class First, class Second>
cudaError_t launch_warpgroup_pair_kernel(const WarpgroupParams& first, const WarpgroupParams& second,
                                         cudaStream_t stream) {
  constexpr int kSharedBytes = std::max(First::kSharedBytes, Second::kSharedBytes);
  return launch_blocks(warpgroup_pair_kernel<First, Second>, First::kThreads, kSharedBytes, stream, first, second);
}

template <bool kMasked>
cudaError_t launch_narrow_pair(WarpgroupPass first_pass, const WarpgroupParams& first, const WarpgroupParams& second,
                               cudaStream_t stream) {
  const auto launch = [&]<WarpgroupPass kFirst, Mode kMode, WarpgroupPass kSecond>() {
    return launch_warpgroup_pair_kernel<WarpgroupSweep<kFirst, kMode, 1, WarpgroupExtra::kNothing, kMasked>,
                                        WarpgroupSweep<kSecond, Mode::kApply, 1, WarpgroupExtra::kNothing, kMasked>>(
        first, second, stream);
  };
  if (first_pass == WarpgroupPass::kForward) {
    return launch.template operator()<WarpgroupPass::kForward, Mode::kSum, WarpgroupPass::kForward>();
  }
  if (first_pass == WarpgroupPass::kQueries) {
    return launch.template operator()<WarpgroupPass::kQueries, Mode::kApplyAndSum, WarpgroupPass::kKeys>();
  }
  return cudaErrorInvalidValue;
}

template <WarpgroupPass kPass, int kHalves, bool kMasked>
cudaError_t launch_warpgroup_mode(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  constexpr bool kSums =
      kPass == WarpgroupPass::kForward || kPass == (kHalves == 1 ? WarpgroupPass::kKeys : WarpgroupPass::kValues);
  const auto launch = [&]<Mode kMode, WarpgroupExtra kExtra>() {
    return launch_warpgroup_kernel<WarpgroupSweep<kPass, kMode, kHalves, kExtra, kMasked>>(params, stream);
  };
  const SweepParams& p = params.sweep;
  switch (mode) {
    case Mode::kRun:
      if constexpr (kHalves == 1 || kPass == WarpgroupPass::kForward) {
        if (p.pass != SweepPass::kOnly) return launch.template operator()<Mode::kRun, WarpgroupExtra::kTwoSided>();
      }
      if constexpr (kHalves == 1 && kPass != WarpgroupPass::kForward) {
        if (p.decay_gradient != nullptr) {
          return launch.template operator()<Mode::kRun, WarpgroupExtra::kDecayGradient>();
        }
      }
      if (p.pass != SweepPass::kOnly || p.decay_gradient != nullptr) return cudaErrorInvalidValue;
      return launch.template operator()<Mode::kRun, WarpgroupExtra::kNothing>();
    case Mode::kApply:
      if constexpr (kHalves == 2 || kPass != WarpgroupPass::kQueries) {  // narrow queries: with their sum, below
        return launch.template operator()<Mode::kApply, WarpgroupExtra::kNothing>();
      }
      break;
    case Mode::kSum:
      if constexpr (kSums) return launch.template operator()<Mode::kSum, WarpgroupExtra::kNothing>();
      break;
    case Mode::kApplyAndSum:
      if constexpr (kHalves == 1 && kPass == WarpgroupPass::kQueries) {
        return launch.template operator()<Mode::kApplyAndSum, WarpgroupExtra::kNothing>();
      }
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
