// Hopper's asynchronous matrix products (sm_90a): a warpgroup multiplies 64 rows at once, one operand or both read from
// shared memory.
//
// Tiles are blocks of 64 columns of 16-bit numbers, a row of a block 128 bytes, its 16-byte pieces permuted by the row
// (piece p of row r lies at p ^ (r mod 8)): the 128-byte swizzle, free of bank conflicts by rows and by columns. Both
// ways of reading such a tile as an operand are a flag: depth along the columns (K-major) or along the rows (MN-major).
#pragma once

#include "kernels/cuda/hopper/instructions.cuh"
#include "kernels/cuda/mma.cuh"

namespace cosformer::kernels::cuda {

// Element offset of (row, column) in a tile of `rows` rows.
__host__ __device__ constexpr int swizzled_offset(int rows, int row, int column) {
  return (column / 64 * rows + row) * 64 + (((column / 8) % 8) ^ (row % 8)) * 8 + column % 8;
}

// Accumulators and fragments have the lanes' share of mma.sync, for 16 rows of each of the four warps.
struct HopperEngine : PairEngine<__nv_bfloat16> {
  // Four 8 x 8 matrices from accumulator layout into a tile of `rows` rows: rows m and m + 8, columns n and n + 8.
  static __device__ __forceinline__ void store_16x16(Tile tile, int rows, int m, int n, int lane,
                                                     const float (&left)[4], const float (&right)[4]) {
    const Tile at = tile + 2 * swizzled_offset(rows, m + (lane & 15), n + (lane >> 4) * 8);
    store_matrices(at, pack_bf16(left[0], left[1]), pack_bf16(left[2], left[3]), pack_bf16(right[0], right[1]),
                   pack_bf16(right[2], right[3]));
  }
};

namespace wgmma {

// Describes a swizzled tile from `address` on: groups of eight rows follow each other every 1,024 bytes; where columns
// are not the depth, blocks of 64 of them every `block_stride` bytes.
__device__ __forceinline__ std::uint64_t descriptor(std::uint32_t address, std::uint32_t block_stride = 16) {
  constexpr std::uint64_t kGroupStride = (1024 >> 4);
  return ((address & 0x3ffffU) >> 4) | (static_cast<std::uint64_t>(block_stride >> 4) << 16) | (kGroupStride << 32) |
         (1ULL << 62);
}

// Step `step` of depth 16 of a tile with `rows` rows, read along its columns or along its rows.
__device__ __forceinline__ std::uint64_t step_along_columns(std::uint64_t tile, int rows, int step) {
  return tile + static_cast<std::uint64_t>((step / 4 * rows * 128 + step % 4 * 32) >> 4);
}
__device__ __forceinline__ std::uint64_t step_along_rows(std::uint64_t tile, int step) {
  return tile + static_cast<std::uint64_t>((step * 16 * 128) >> 4);
}

// The same, A's registers as the engine has them.
template <bool kRows, int kTiles>
__device__ __forceinline__ void multiply(float (&c)[kTiles][4], const HopperEngine::A& a, std::uint64_t b, bool add) {
  multiply<kRows>(c, a.r, b, add);
}

}  // namespace wgmma
}  // namespace cosformer::kernels::cuda
