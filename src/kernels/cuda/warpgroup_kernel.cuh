// The warpgroup sweep's loop and its launch.
#pragma once

#include <algorithm>

#include "kernels/cuda/warpgroup_output.cuh"

namespace cosformer::kernels::cuda {

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::compute(int stage,
                                                                                                int position) {
  const std::uint32_t x = x_tile(stage);
  float error[2] = {1.0F, 1.0F}, scale[2] = {1.0F, 1.0F};
  A weights[4] = {};
  if constexpr (!kInter) {
    update(stage, position);
  } else if constexpr (kFeatureRows) {
    float out[kForward ? 9 : 8][4];
    value_rows_product(stage, x, weights, out);
    if constexpr (kUpdate) update(stage, position);
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
      if constexpr (kUpdate && !kBoth && !kDecayGradient) update(stage, position);
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
      if constexpr (kUpdate) update(stage, position);
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

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
__device__ __forceinline__ void WarpgroupSweep<kPass_, kMode, kHalves, kExtra, kFetch>::run(
    const float (*sum)[2][9][4]) {
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
    for (int i = 0; i < kStages - 1; ++i) fetch_if_before(end, i, position + i * kChunk);
    fetch_own(position);
  }
  constexpr bool kByParts = kInter && (kHalves == 1 || !kIntra);  // takes half of the registers
  if constexpr (!kByParts) load_state<0, 2>();
  if constexpr (kIntra) build_distances();
  clear_blocks();
  if constexpr (kInter) {
    if (sum != nullptr) {
      take_state(0, *sum);
      take_state(1, *sum);
    } else if constexpr (kByParts) {
      load_state<0, 1>();
    }
    publish_state(0);
    if (kByParts && sum == nullptr) load_state<1, 2>();
    publish_state(1);
  }
  if constexpr (kRowSums) clear_state<0, 2>();
  if constexpr (!kUpdate) {  // warps go their own ways from here on, but for the halves' exchanges
    wgmma::publish_shared();
    __syncthreads();
  }
  int first = -1, last = -1, stage = 0;
  unsigned round = 0;  // odd or even, of the stages' use
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
    if constexpr (kBoxes) {
      boxes::wait(barrier(stage), round);
    } else {
      wait_copies<kHasOwn ? 1 : kStages - 2>();
    }
    prepare(stage, position);
    if constexpr (kUpdate || kBoxes) wgmma::publish_shared();
    if constexpr (kUpdate || kHalves == 2) {
      __syncthreads();
    } else if constexpr (kBoxes) {
      __syncwarp();
    }
    fetch_if_before(end, stage == 0 ? kStages - 1 : stage - 1, position + (kStages - 1) * kChunk);
    compute(stage, position);
    if (kHasOwn) {
      if (position + kChunk < end) {
        fetch_own(position + kChunk);
      } else {
        commit_copies();
      }
    }
    if constexpr (kWaitsAtEnd) __syncthreads();
    if constexpr (kIntra) {
      publish_state(0);
      publish_state(1);
    }
    if (++stage == kStages) {
      stage = 0;
      round ^= 1U;
    }
  }
  if constexpr (kBoxes) boxes::await_stores();
  if constexpr (kUpdate) {  // where no state runs, registers should not be kept for it
    if (p.store == StoreState::kOfSegment) store_state(segment);
    if (p.store == StoreState::kFinal && last_segment) store_state(p.total_slot);
  }
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
  First summing(first, shared);
  summing.run();
  __syncthreads();  // nobody reads the first one's tiles any more
  Second(second, shared).run(&summing.state);
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

template <WarpgroupPass kFirst, Mode kMode, WarpgroupPass kSecond, WarpgroupFetch kFetch,
          WarpgroupFetch kSecondFetch = kFetch>
cudaError_t launch_pair_of(const WarpgroupParams& first, const WarpgroupParams& second, cudaStream_t stream) {
  return launch_warpgroup_pair_kernel<WarpgroupSweep<kFirst, kMode, 1, WarpgroupExtra::kNothing, kFetch>,
                                      WarpgroupSweep<kSecond, Mode::kApply, 1, WarpgroupExtra::kNothing, kSecondFetch>>(
      first, second, stream);
}

template <WarpgroupFetch kFetch>
cudaError_t launch_narrow_pair(WarpgroupPass first_pass, const WarpgroupParams& first, const WarpgroupParams& second,
                               cudaStream_t stream) {
  using enum WarpgroupPass;
  if (first_pass == kForward) return launch_pair_of<kForward, Mode::kSum, kForward, kFetch>(first, second, stream);
  if (first_pass == kQueries) return launch_pair_of<kQueries, Mode::kApplyAndSum, kKeys, kFetch>(first, second, stream);
  return cudaErrorInvalidValue;
}

template <WarpgroupPass kPass, int kHalves, WarpgroupFetch kFetch>
cudaError_t launch_warpgroup_mode(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  constexpr bool kSums =
      kPass == WarpgroupPass::kForward || kPass == (kHalves == 1 ? WarpgroupPass::kKeys : WarpgroupPass::kValues);
  const auto launch = [&]<Mode kMode, WarpgroupExtra kExtra>() {
    return launch_warpgroup_kernel<WarpgroupSweep<kPass, kMode, kHalves, kExtra, kFetch>>(params, stream);
  };
  const SweepParams& p = params.sweep;
  switch (mode) {
    case Mode::kRun:
      if constexpr (kFetch != WarpgroupFetch::kBoxes && (kHalves == 1 || kPass == WarpgroupPass::kForward)) {
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
      if constexpr (kSums && kFetch != WarpgroupFetch::kBoxes)
        return launch.template operator()<Mode::kSum, WarpgroupExtra::kNothing>();
      break;
    case Mode::kApplyAndSum:
      if constexpr (kHalves == 1 && kPass == WarpgroupPass::kQueries) {
        return launch.template operator()<Mode::kApplyAndSum, WarpgroupExtra::kNothing>();
      }
      break;
  }
  return cudaErrorInvalidValue;
}

template <int kHalves, WarpgroupFetch kFetch>
cudaError_t launch_warpgroup_pass(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  using enum WarpgroupPass;
  switch (pass) {
    case kForward: return launch_warpgroup_mode<kForward, kHalves, kFetch>(mode, params, stream);
    case kQueries: return launch_warpgroup_mode<kQueries, kHalves, kFetch>(mode, params, stream);
    case kKeys: return launch_warpgroup_mode<kKeys, kHalves, kFetch>(mode, params, stream);
    case kValues:
      if constexpr (kHalves == 2) return launch_warpgroup_mode<kValues, kHalves, kFetch>(mode, params, stream);
      break;  // narrow: comes with the keys
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
