// Where the blocks of a head wait for each other, all on the device at the same time: a number for each in memory,
// which says how far it has come.
#pragma once

#include "kernels/cuda/hopper/place.cuh"

namespace cosformer::kernels::cuda {

struct SegmentFlags {
  unsigned* numbers;
  int own, blocks;

  __device__ __forceinline__ explicit SegmentFlags(const HopperPlace& place)
      : numbers(place.w.segment_flags + place.first_segment()), own(place.segment), blocks(place.p.segments) {}

  // Numbers are awaited only after all blocks have done this: before that they may be what others have left.
  __device__ __forceinline__ void reset() const {
    if (threadIdx.x == 0) numbers[own] = 0;
  }
  // By one thread. What the block has written before a barrier ahead of this is seen by those that await the number.
  __device__ __forceinline__ void set(unsigned number) const { store_release(numbers + own, number); }
  // By some threads, and a barrier for the others after it.
  __device__ __forceinline__ void wait_for(unsigned number, int thread, int threads) const {
    for (int block = thread; block < blocks; block += threads) {
      while (load_acquire(numbers + block) < number) {
      }
    }
  }

  // The same by all threads of a block.
  __device__ __forceinline__ void set_by_block(unsigned number) const {
    __syncthreads();
    if (threadIdx.x == 0) set(number);
  }
  __device__ __forceinline__ void wait_by_block(unsigned number) const {
    wait_for(number, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
    __syncthreads();
  }
};

}  // namespace cosformer::kernels::cuda
