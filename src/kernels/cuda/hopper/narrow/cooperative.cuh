// Long sequences in one launch: blocks sum the columns of their segments, the blocks of a head turn these sums into
// what each segment starts from, and go on with their sweeps, the first rows of which have come meanwhile. Heads do not
// wait for each other.
//
// The first segment starts from nothing, and nothing starts from the last one's sum. So one block of each head has
// both: while the others sum, it sweeps the first (of p.first_tokens), and its state is that segment's sum.
#pragma once

#include <utility>

#include <cooperative_groups.h>

#include "kernels/cuda/hopper/narrow/kernel.cuh"
#include "kernels/cuda/hopper/segment_flags.cuh"

namespace cosformer::kernels::cuda {

// The sums of a head's segments in memory: each thread's accumulators as they are, in pieces of four numbers, then the
// extra column. A sum becomes the sum of those before it, added in their order.
struct SegmentSums {
  static constexpr int kThreads = 128, kTiles = 8;
  static constexpr int kPieces = 2 * kTiles * kThreads;
  static_assert(kCooperativeSumFloats == 4 * kPieces + kThreads);

  float* first;  // of the head's first segment
  int segments, own;

  __device__ __forceinline__ explicit SegmentSums(const HopperPlace& place)
      : first(place.p.states + place.first_segment() * kCooperativeSumFloats),
        segments(place.p.segments),
        own(place.segment) {}

  __device__ __forceinline__ float4& piece(int segment, int number) const {
    return *reinterpret_cast<float4*>(first + segment * kCooperativeSumFloats + number * 4);
  }
  __device__ __forceinline__ float4& own_piece(int part, int tile) const {
    return piece(own, (part * kTiles + tile) * kThreads + static_cast<int>(threadIdx.x));
  }
  __device__ __forceinline__ float& extra(int segment, int number) const {
    return first[segment * kCooperativeSumFloats + kPieces * 4 + number];
  }
  // Of the extra column: this thread's accumulator i.
  __device__ __forceinline__ static int extra_number(const HopperPlace& place, int part, int i) {
    return part * 64 + place.warp * 16 + place.g + i / 2 * 8;
  }

  __device__ __forceinline__ void put(const HopperPlace& place, const float (&state)[2][9][4]) const {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const float(&x)[4] = state[part][n];
        own_piece(part, n) = {x[0], x[1], x[2], x[3]};
      }
#pragma unroll
      for (int i = 0; i < 4; i += 2) {  // head and rest were summed apart
        if (place.t == 0) extra(own, extra_number(place, part, i)) = state[part][8][i] + state[part][8][i + 1];
      }
    }
  }

  // What starts segment `begun` is added up. A block does its share for all: some of the pieces, each through all
  // segments, many loads under way; the last segment's start goes to where the first one's sum was. The extra column is
  // short: each block adds up its own, to shared memory.
  __device__ __forceinline__ void scan(const HopperPlace& place, int begun, float* extras) const {
    // Of a whole segment: nothing decays in the first.
    const float decay = decay_of(place.log_decay(), place.p.segment_tokens);
    const int thread = static_cast<int>(threadIdx.x);
    struct At {
      int number, segment;
    };
    const auto next = [&](At at) {
      return at.segment + 1 < segments ? At{at.number, at.segment + 1} : At{at.number + segments * kThreads, 0};
    };
    constexpr int kBatch = 16;
    // Those of the extra column are on their way while the others are added up.
    float extras_of[kBatch];
    const auto load_extras = [&](int segment) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) extras_of[i] = segment + i < begun ? extra(segment + i, thread) : 0.0F;
    };
    load_extras(0);
    At at{own * kThreads + thread, 0};
    float4 sum{};
    while (at.number < kPieces) {
      float4 its[kBatch];
      At ahead = at;
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (ahead.number < kPieces) its[i] = piece(ahead.segment, ahead.number);
        ahead = next(ahead);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (at.number >= kPieces) break;
        if (at.segment == 0) {
          sum = its[i];
        } else {
          piece(at.segment, at.number) = sum;
          sum = {decay * sum.x + its[i].x, decay * sum.y + its[i].y, decay * sum.z + its[i].z,
                 decay * sum.w + its[i].w};
        }
        if (at.segment + 1 == segments) piece(0, at.number) = sum;
        at = next(at);
      }
    }
    float own_extra = 0.0F;
    for (int segment = 0; segment < begun; segment += kBatch) {
      if (segment > 0) load_extras(segment);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) own_extra = segment + i < begun ? decay * own_extra + extras_of[i] : own_extra;
    }
    extras[thread] = own_extra;
  }

  __device__ __forceinline__ void take(const HopperPlace& place, const float* extras, float (&state)[2][9][4]) const {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const float4 x = own_piece(part, n);
        state[part][n][0] = x.x;
        state[part][n][1] = x.y;
        state[part][n][2] = x.z;
        state[part][n][3] = x.w;
      }
#pragma unroll
      for (int i = 0; i < 4; i += 2) {  // columns 0 and 2 of the extra block
        state[part][8][i] = place.t < 2 ? extras[extra_number(place, part, i)] : 0.0F;
        state[part][8][i + 1] = 0.0F;
      }
    }
  }
};

template <class First, class Second>
__global__ void __launch_bounds__(First::kThreads, std::min(First::kMinBlocks, Second::kMinBlocks))
    narrow_cooperative_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  static_assert(Second::kAngles - Second::kRowDots >= SegmentSums::kThreads * 4);  // arrays of the loop, free before it
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  const SweepParams& p = params.sweep;
  First summing(params, shared);
  summing.place();
  const auto grid = cooperative_groups::this_grid();
  decltype(grid)::arrival_token started{};
  // When the first rows are under way.
  const auto start = [&] {
    SegmentFlags(summing).reset();
    started = grid.barrier_arrive();
  };
  const auto from_nothing = [](auto& sweep) { return [&sweep](int part) { sweep.clear_block(sweep.state[part]); }; };
  if (summing.segment == 0) {
    Second leading(params, shared);
    leading.place();
    leading.run(leading.cooperative_span(0), start, from_nothing(leading));
    SegmentSums(leading).put(leading, leading.state);
    leading.retire_barriers();
  } else {
    summing.run(summing.cooperative_span(summing.segment), start, from_nothing(summing));
    SegmentSums(summing).put(summing, summing.state);
  }
  SegmentFlags(summing).set_by_block(1);  // and nobody reads the first one's tiles any more
  Second sweeping(params, shared);
  sweeping.place();
  const int segment = sweeping.segment == 0 ? p.segments : sweeping.segment;
  float* const extras = sweeping.floats(Second::kRowDots);
  const auto scan = [&] {
    grid.barrier_wait(std::move(started));
    SegmentFlags(sweeping).wait_by_block(1);
    SegmentSums(sweeping).scan(sweeping, segment, extras);
    SegmentFlags(sweeping).set_by_block(2);
  };
  sweeping.run(sweeping.cooperative_span(segment), scan, [&](int part) {
    if (part != 0) return;
    SegmentFlags(sweeping).wait_by_block(2);
    SegmentSums(sweeping).take(sweeping, extras, sweeping.state);
  });
#endif
}

template <class First, class Second>
struct CooperativeLaunch {
  static constexpr int kSharedBytes = std::max(First::kSharedBytes, Second::kSharedBytes);
  static cudaError_t start(const HopperParams& params, cudaStream_t stream) {
    return launch_cooperative_blocks(narrow_cooperative_kernel<First, Second>, First::kThreads, kSharedBytes, stream,
                                     params);
  }
  static int blocks_of_multiprocessor() {
    return blocks_at_once<narrow_cooperative_kernel<First, Second>>(First::kThreads, kSharedBytes);
  }
};

}  // namespace cosformer::kernels::cuda
