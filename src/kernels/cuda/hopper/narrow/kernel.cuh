// The warpgroup sweep's loop and its launch.
#pragma once

#include <algorithm>

#include "kernels/cuda/hopper/launch_blocks.cuh"
#include "kernels/cuda/hopper/narrow/output.cuh"

namespace cosformer::kernels::cuda {

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::compute(int stage, int position) {
  const std::uint32_t x = x_tile(stage);
  float error[2] = {1.0F, 1.0F}, scale[2] = {1.0F, 1.0F};
  A weights[4] = {};
  if constexpr (!kInter) {
    update(stage, position);
  } else if constexpr (kForward) {
    float out[9][4];
    value_rows_product(stage, x, weights, out);
    if constexpr (kUpdate) update(stage, position);
    wgmma::wait<kUpdate ? 1 : 0>();
    wgmma::settle(out);
    await_own();
    finish_rows(x, 0U, 0, position, scale, out);
  } else {
    const std::uint32_t own = kKeys ? x + kTile : (kRowSums ? feature_tile(stage) : own_tile());
    {
      float out[8][4];
      if constexpr (kQueries) {
        query_errors(denominators(stage), floats(kRowDots), position, !kRowSums, error, scale);
      }
      feature_rows_product(stage, x, own, position, error, scale, weights, out);
      if constexpr (kUpdate && !kKeys && !kDecayGradient) update(stage, position);
      wgmma::wait<kUpdate && !kKeys && !kRowSums ? 1 : 0>();
      wgmma::settle(out);
      if constexpr (kRowSums) {
        wgmma::settle(state[0]);
        wgmma::settle(state[1]);
        __syncthreads();  // results go where other warps' sums have been reading
      }
      await_own();
      finish_rows(x, own, 0, position, scale, out);
    }
    if constexpr (kKeys) {
      float out[8][4];
      value_rows_product(stage, x + kTile, weights, out);
      if constexpr (kUpdate) update(stage, position);
      wgmma::wait<kUpdate ? 1 : 0>();
      wgmma::settle(out);
      finish_rows(x + kTile, 0U, 1, position, scale, out);
    }
  }
  if constexpr (kUpdate) settle_state();
}

// A chunk's features are made from what has been fetched on their way to the products.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
template <class Meanwhile>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::sum_columns(const Span& chunks,
                                                                                        Meanwhile meanwhile) {
  int at = chunks.begin, first = -1, last = -1, stage = 0;
  bool first_chunk = true;
  A raw[2][2];
  const auto chunk = [&](int x) { return chunks.template chunk<kLastFirst>(x); };
  const auto make_ready = [&] {
    const int position = chunk(at);
    follow_powers(position, first, last);
    float scale = 1.0F;  // of the lane's column: queries are divided by their denominators
    if constexpr (kQueryColumns) {
      wait_copies<kAhead - 1>();
      __syncwarp();
      set_error_columns(stage);
      if (p.normalised) scale = __fdividef(1.0F, fmaxf(denominators(stage)[warp * 16 + lane % 16], p.eps));
    }
    set_turns<true, false, kDecays>(position, first_chunk, shared + kAngles, weights_at(position), row_turns(), scale);
    first_chunk = false;
    wait_copies<kAhead - 1>();
    wgmma::publish_shared();
    __syncthreads();
    fetch_if(at + kAhead * kChunk < chunks.end, stage_ahead(stage), chunk(at + kAhead * kChunk));
    load_raw_features(raw, feature_tile(stage));
  };
  if (at < chunks.end) {
    make_ready();
  } else {
    meanwhile();
  }
  while (at < chunks.end) {
    const Io* weights = weights_at(chunk(at));
    A parts[2][4];
    weigh_features(parts, raw[0], weights, 0);
    weigh_features(parts, raw[1], weights, 2);
    add_to_state(stage, parts);
    if (at == chunks.begin) meanwhile();
    at += kChunk;
    stage = stage + 1 == kStages ? 0 : stage + 1;
    if (at < chunks.end) make_ready();
    settle_state();
  }
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
template <class Meanwhile, class Start>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::run(Meanwhile meanwhile, Start start) {
  place();
  if (!kInter && p.frame == Frame::kBoth && segment + p.slot_step >= p.segments) return;  // nothing starts after them
  const Span chunks = span();
  run(chunks, meanwhile, start);
  if constexpr (kUpdate) {  // where no state runs, registers should not be kept for it
    if (p.store == StoreState::kOfSegment) store_state(segment);
    if (p.store == StoreState::kFinal && chunks.last) store_state(p.total_slot);
  }
}

template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
template <class Meanwhile, class Start>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::run(const Span& chunks, Meanwhile meanwhile,
                                                                                Start start) {
  const int end = chunks.end;
  const auto chunk = [&](int at) { return chunks.template chunk<kLastFirst>(at); };
  int at = chunks.begin;

  if constexpr (kDecayGradient) decay_sum() = 0.0;
  start_rows(chunk(at));
  if (at < end) {
    for (int i = 0; i < kAhead; ++i) fetch_if(at + i * kChunk < end, i, chunk(at + i * kChunk));
    fetch_own(end, at);
  }
  if constexpr (!kSums) meanwhile();
  take_angles();
  keep_angles<kLastFirst>(shared + kAngles);
  if constexpr (!kInter) start(0), start(1);
  if constexpr (kIntra) build_distances(floats(kDistances));
  clear_blocks();
  int first = -1, last = -1;
  const auto make_ready = [&](int position, bool first_chunk, int stage, unsigned round) {
    if constexpr (kUpdate) follow_powers(position, first, last);
    set_turns<kUpdate, kInter, kDecays>(position, first_chunk, shared + kAngles, weights_at(position), row_turns());
    if constexpr (kTma) {
      mbarrier::wait(barrier(stage), round);
    } else {
      wait_copies<kHasOwn ? 1 : kAhead - 1>();
    }
    prepare(stage, position);
  };
  if (kReadyBefore && at < end) make_ready(chunk(at), true, 0, 0);
  if constexpr (kInter) {  // by parts, which takes half of the registers
    start(0);
    publish_state(0);
    start(1);
    publish_state(1);
  }
  if constexpr (kRowSums) clear_block(state[0]), clear_block(state[1]);
  if constexpr (!kUpdate) {  // warps go their own ways from here on
    wgmma::publish_shared();
    __syncthreads();
  }
  if constexpr (kSums) {
    sum_columns(chunks, meanwhile);
  } else {
    int stage = 0;
    unsigned round = 0;  // odd or even, of the stages' use
    bool first_chunk = true;
    // The next token before which the state is kept.
    [[maybe_unused]] int kept = kKeepsStates ? (at + w.kept_tokens - 1) / w.kept_tokens * w.kept_tokens : 0;
    for (; at < end; at += kChunk) {
      const int position = chunk(at), next = at + kAhead * kChunk;
      if (kKeepsStates && position == kept) {
        keep_state(slot_in(w.kept, p.slots, kept / w.kept_tokens * p.slot_step));
        kept += w.kept_tokens;
      }
      if (!kReadyBefore || !first_chunk) make_ready(position, first_chunk, stage, round);
      first_chunk = false;
      if constexpr (kUpdate || kTma) wgmma::publish_shared();
      if constexpr (kUpdate) {
        __syncthreads();
      } else if constexpr (kTma) {
        __syncwarp();
      }
      fetch_if(next < end, stage_ahead(stage), chunk(next));
      compute(stage, position);
      fetch_own(end, at + kChunk);
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
  }
  if constexpr (kTma) tma::await_stores();
  if constexpr (kDecayGradient) {
    const double sum = sum_over_warp(decay_sum());
    double* sums = reinterpret_cast<double*>(row_turns());
    __syncthreads();
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0 && p.decay_gradient != nullptr)
      p.decay_gradient[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
  }
}

template <class Sweep>
__global__ void __launch_bounds__(Sweep::kThreads, Sweep::kMinBlocks)
    narrow_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  Sweep sweep(params, shared);
  sweep.run([] {}, [&](int part) { sweep.begin_state(part); });
#endif
}

// Short sequences: a block sums all of one side, then takes that sum to all rows of the other. Nobody waits in between
// for other blocks to finish.
template <class First, class Second>
__global__ void __launch_bounds__(First::kThreads, std::min(First::kMinBlocks, Second::kMinBlocks))
    narrow_single_kernel(const __grid_constant__ HopperParams first, const __grid_constant__ HopperParams second) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  First summing(first, shared);
  summing.run([] {}, [&](int part) { summing.begin_state(part); });
  __syncthreads();  // nobody reads the first one's tiles any more
  Second applying(second, shared);
  applying.run([] {}, [&](int part) { applying.take_state(part, summing.state); });
#endif
}

template <class Sweep>
cudaError_t launch_narrow_kernel(const HopperParams& params, cudaStream_t stream) {
  return launch_blocks(narrow_kernel<Sweep>, Sweep::kThreads, Sweep::kSharedBytes, stream, params);
}

template <class First, class Second>
cudaError_t launch_narrow_single_kernel(const HopperParams& first, const HopperParams& second, cudaStream_t stream) {
  constexpr int kSharedBytes = std::max(First::kSharedBytes, Second::kSharedBytes);
  return launch_blocks(narrow_single_kernel<First, Second>, First::kThreads, kSharedBytes, stream, first, second);
}

template <HopperRole kFirst, Mode kMode, HopperRole kSecond, Fetch kFetch, Fetch kSecondFetch = kFetch>
cudaError_t launch_narrow_single_of(const HopperParams& first, const HopperParams& second, cudaStream_t stream) {
  return launch_narrow_single_kernel<NarrowSweep<kFirst, kMode, NarrowExtra::kNothing, kFetch>,
                                     NarrowSweep<kSecond, Mode::kApply, NarrowExtra::kNothing, kSecondFetch>>(
      first, second, stream);
}

template <Fetch kFetch>
cudaError_t launch_narrow_single_of_role(HopperRole first_role, const HopperParams& first, const HopperParams& second,
                                         cudaStream_t stream) {
  using enum HopperRole;
  if (first_role == kForward)
    return launch_narrow_single_of<kForward, Mode::kSum, kForward, kFetch>(first, second, stream);
  if (first_role == kQueries)
    return launch_narrow_single_of<kQueries, Mode::kApplyAndSum, kKeys, kFetch>(first, second, stream);
  return cudaErrorInvalidValue;
}

template <HopperRole kRole, Fetch kFetch>
cudaError_t launch_narrow_mode(Mode mode, const HopperParams& params, cudaStream_t stream) {
  const auto launch = [&]<Mode kMode, NarrowExtra kExtra>() {
    return launch_narrow_kernel<NarrowSweep<kRole, kMode, kExtra, kFetch>>(params, stream);
  };
  const SweepParams& p = params.sweep;
  switch (mode) {
    case Mode::kRun:
      if (p.contribution != Contribution::kOnly) break;  // the general sweep's
      if (p.decay_gradient != nullptr) {
        if constexpr (kRole != HopperRole::kForward) {
          return launch.template operator()<Mode::kRun, NarrowExtra::kDecayGradient>();
        }
        break;
      }
      return launch.template operator()<Mode::kRun, NarrowExtra::kNothing>();
    case Mode::kApply:
      if constexpr (kRole != HopperRole::kQueries) {  // those come with their sum, below
        return launch.template operator()<Mode::kApply, NarrowExtra::kNothing>();
      }
      break;
    case Mode::kSum:
      if constexpr (kRole != HopperRole::kQueries && kFetch != Fetch::kTma)
        return launch.template operator()<Mode::kSum, NarrowExtra::kNothing>();
      break;
    case Mode::kApplyAndSum:
      if constexpr (kRole == HopperRole::kQueries) {
        return launch.template operator()<Mode::kApplyAndSum, NarrowExtra::kNothing>();
      }
      break;
  }
  return cudaErrorInvalidValue;
}

template <Fetch kFetch>
cudaError_t launch_narrow_role(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream) {
  return launch_of_role(role, [&]<HopperRole kRole>() {
    if constexpr (kRole == HopperRole::kValues) {
      return cudaErrorInvalidValue;  // comes with the keys
    } else {
      return launch_narrow_mode<kRole, kFetch>(mode, params, stream);
    }
  });
}

}  // namespace cosformer::kernels::cuda
