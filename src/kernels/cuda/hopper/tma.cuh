// TMA: tiles of a tensor, brought to shared memory and back by the memory's copy engine (sm_90): one lane asks, and an
// mbarrier in shared memory tells when all bytes have arrived. Swizzled as wgmma.cuh describes; zeros from outside the
// tensor.
#pragma once

#include <cstdint>

#include "kernels/cuda/hopper/mbarrier.cuh"
#include "kernels/cuda/hopper/params.h"

namespace cosformer::kernels::cuda::tma {

// The tile of `map` that begins at a token of a head, and at a column.
__device__ __forceinline__ void fetch(std::uint32_t shared, const TensorMap& map, int token, int head, int batch,
                                      std::uint32_t barrier, int column = 0) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], "
      "[%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(column), "r"(token), "r"(head), "r"(batch)
      : "memory");
}

// And from shared memory, without what lies outside the tensor. Writes of other lanes must have been published.
__device__ __forceinline__ void store(const TensorMap& map, int token, int head, int batch, std::uint32_t shared,
                                      int column = 0) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2,%3,%4,%5}], [%1];\n"
      "cp.async.bulk.commit_group;" ::"l"(&map),
      "r"(shared), "r"(column), "r"(token), "r"(head), "r"(batch)
      : "memory");
}
// Until this lane's stores have read shared memory, or have ended.
__device__ __forceinline__ void await_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ __forceinline__ void await_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace cosformer::kernels::cuda::tma
