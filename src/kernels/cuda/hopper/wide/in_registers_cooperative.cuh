// Long sequences of wide heads in one launch: the blocks of a head sum the keys of their segments (sums.cuh), wait
// for each other, scan the sums, and go on with the forward pass (in_registers_layout.cuh), whose first chunks have
// come meanwhile. The keys that a block has read last are those it begins with.
#pragma once

#include <utility>

#include <cooperative_groups.h>

#include "kernels/cuda/hopper/segment_flags.cuh"
#include "kernels/cuda/hopper/wide/in_registers_scores.cuh"
#include "kernels/cuda/hopper/wide/in_registers_values.cuh"
#include "kernels/cuda/hopper/wide/sums.cuh"

namespace cosformer::kernels::cuda {

template <class L>
__device__ __forceinline__ void set_up_in_registers(unsigned char* shared) {
  set_up_stages<L>(shared);
  for (int stage = 0; stage < L::kStages; ++stage) mbarrier::init(shared_address(shared) + L::fetched(stage), 3);
}

template <class L>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
    wide_cooperative_kernel(const __grid_constant__ HopperParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Sums = WideSumLayout<false, false>;
  static_assert(L::kBarriers >= Sums::kSharedBytes);  // both sets of barriers exist at the same time
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  if (threadIdx.x == 0) {
    set_up_stages<Sums>(shared);
    set_up_in_registers<L>(shared);
    wgmma::publish_shared();
  }
  // Found once: found anew in the branches it makes the compiler run out of registers.
  WideSum place(params, shared);
  place.locate<false, true>();
  const SegmentFlags flags(place);
  const auto await = [&](unsigned number) {
    flags.wait_for(number, static_cast<int>(threadIdx.x) % 128, 128);
    place.sync_warpgroup();
  };
  flags.reset();
  const auto grid = cooperative_groups::this_grid();
  auto started = grid.barrier_arrive();
  run_specialised<L::kScoreRegisters, L::kValueRegisters>(
      [&] {
        WideSumProducer<Sums>(params, shared).sum();
        grid.barrier_wait(std::move(started));  // and nobody reads the sums' tiles any more
        if (threadIdx.x == 0) {
          flags.set(1);
          retire_stages<Sums>(shared);
        }
        InRegistersScores<L>(params, shared).run([&](const auto& scores) {
          sync_named_barrier<4, 384>();
          return scores.floats(L::kSum);
        });
      },
      [&](int block) {
        WideSummer<Sums>(params, shared).sum(block);
        grid.barrier_wait(std::move(started));
        InRegistersValues<L>(params, shared).run(block, [&] {
          await(1);
          // The extra column is short: each block adds up its own, so that scores need not wait for the others' scans.
          const int number = static_cast<int>(threadIdx.x) - 128;
          const bool has_extra = number < 2 * params.sweep.dim;
          const float extra = has_extra ? place.extra_before(number) : 0.0F;
          if (has_extra) place.floats(L::kSum)[number] = extra;
          arrive_at_named_barrier<4, 384>();
          place.scan_matrices();
          sync_named_barrier<5, 256>();
          if (threadIdx.x == 128) flags.set(2);
          await(2);
          if (has_extra) place.own_extras()[number] = extra;  // for the backward pass; everybody has read the sum
        });
      });
#endif
}

}  // namespace cosformer::kernels::cuda
