// The warpgroup sweep's results, from accumulators to memory.
#pragma once

#include "kernels/cuda/hopper/narrow/products.cuh"

namespace cosformer::kernels::cuda {

// From accumulators to memory.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
template <int kTiles>
__device__ __forceinline__ void NarrowSweep<kRole_, kMode, kExtra, kFetch>::finish_rows(std::uint32_t tile,
                                                                                        std::uint32_t own, int number,
                                                                                        int position, float (&scale)[2],
                                                                                        float (&out)[kTiles][4]) {
  if constexpr (kForward) {
    const float sums[2] = {__shfl_sync(0xffffffffU, out[8][0] + out[8][1], g * 4),
                           __shfl_sync(0xffffffffU, out[8][2] + out[8][3], g * 4)};
    forward_scale<false>(position, sums, nullptr, scale);
  }
  if constexpr (kTma) {
    stage_rows<kRowsAreQueries>(tile, scale, out);
    wgmma::publish_shared();
    __syncwarp();
    if (lane == 0) {
      tma::store(w.out_map, position + warp * 16, head, batch, tile + warp * kTmaBytes);
    }
    __syncwarp();
  } else {
    write_rows<kTiles, kForward, kRowsAreQueries, false>(tile, own, 0U, target(number, position), nullptr, scale, out);
  }
}

}  // namespace cosformer::kernels::cuda
