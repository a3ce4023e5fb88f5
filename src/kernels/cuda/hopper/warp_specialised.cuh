// Warp-specialised blocks, whose warpgroups are producer or consumers: stages of shared memory that go round between
// them, barriers there that tell when one is full or free, and registers that go where accumulators are.
#pragma once

#include "kernels/cuda/hopper/mbarrier.cuh"
#include "kernels/cuda/hopper/steps.cuh"

namespace cosformer::kernels::cuda {

struct WarpSpecialised : HopperSteps {
  using HopperSteps::HopperSteps;

  // Arrays of a number, or two, for each row of a chunk.
  __device__ __forceinline__ float* floats(int offset, int stage = 0) const {
    return reinterpret_cast<float*>(shared + offset) + stage * kChunk;
  }
  __device__ __forceinline__ float2* pairs(int offset, int stage) const {
    return reinterpret_cast<float2*>(shared + offset) + stage * kChunk;
  }
  // What this thread wrote can be read, by the matrix unit too where it was published.
  __device__ __forceinline__ void arrive(int barrier) { mbarrier::arrive(base + barrier); }
  __device__ __forceinline__ void wait(int barrier, unsigned round) { mbarrier::wait(base + barrier, round & 1U); }
  // Of this warpgroup alone.
  __device__ __forceinline__ void sync_warpgroup() const {
    sync_named_barrier<128>(1 + static_cast<int>(threadIdx.x / 128));
  }
  __device__ __forceinline__ void clear_tile(int tile) {
    for (int i = threadIdx.x % 128 * 16; i < kTile; i += 128 * 16) store_shared_16(base + tile + i, {0U, 0U, 0U, 0U});
    sync_warpgroup();
  }
};

// A stage, and how often all stages have been gone through.
template <int kStages>
struct RingTurn {
  int stage = 0;
  unsigned round = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      ++round;
    }
  }
};

// One warpgroup fills stages, two free them. By one thread, before the block's first barrier.
template <class L>
__device__ __forceinline__ void set_up_stages(unsigned char* shared) {
  for (int stage = 0; stage < L::kStages; ++stage) {
    mbarrier::init(shared_address(shared) + L::full(stage), 128);
    mbarrier::init(shared_address(shared) + L::free(stage), 2 * 128);
  }
}

// Before their memory becomes something else.
template <class L>
__device__ __forceinline__ void retire_stages(unsigned char* shared) {
  for (int stage = 0; stage < L::kStages; ++stage) {
    mbarrier::inval(shared_address(shared) + L::full(stage));
    mbarrier::inval(shared_address(shared) + L::free(stage));
  }
}

// The first warpgroup does `first()` with few registers, the others `others(number)` with many.
template <int kRegisters, int kOtherRegisters, class First, class Others>
__device__ __forceinline__ void run_specialised(First first, Others others) {
  const int warpgroup = __shfl_sync(0xffffffffU, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    give_registers<kRegisters>();
    first();
  } else {
    take_registers<kOtherRegisters>();
    others(warpgroup - 1);
  }
}

}  // namespace cosformer::kernels::cuda
