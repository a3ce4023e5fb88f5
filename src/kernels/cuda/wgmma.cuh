// Hopper's asynchronous matrix products (sm_90a): a warpgroup multiplies 64 rows at once, one operand or both read from
// shared memory.
//
// Tiles are blocks of 64 columns of 16-bit numbers, a row of a block 128 bytes, its 16-byte pieces permuted by the row
// (piece p of row r lies at p ^ (r mod 8)): the 128-byte swizzle, free of bank conflicts by rows and by columns. Both
// ways of reading such a tile as an operand are a flag: depth along the columns (K-major) or along the rows (MN-major).
#pragma once

#include "kernels/cuda/mma.cuh"

namespace cosformer::kernels::cuda {

// Element offset of (row, column) in a tile of `rows` rows.
__host__ __device__ constexpr int swizzled_offset(int rows, int row, int column) {
  return (column / 64 * rows + row) * 64 + (((column / 8) % 8) ^ (row % 8)) * 8 + column % 8;
}

// Accumulators and fragments have the lanes' share of mma.sync, for 16 rows of each of the four warps.
struct WarpgroupEngine : PairEngine<__nv_bfloat16> {
  // Four 8 x 8 matrices from accumulator layout into a tile of `rows` rows: rows m and m + 8, columns n and n + 8.
  static __device__ __forceinline__ void store_16x16(Tile tile, int rows, int m, int n, int lane,
                                                     const float (&left)[4], const float (&right)[4]) {
    const Tile at = tile + 2 * swizzled_offset(rows, m + (lane & 15), n + (lane >> 4) * 8);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at),
                 "r"(pack_bf16(left[0], left[1])), "r"(pack_bf16(left[2], left[3])), "r"(pack_bf16(right[0], right[1])),
                 "r"(pack_bf16(right[2], right[3]))
                 : "memory");
  }
};

namespace wgmma {

// Shared memory written by ordinary stores becomes visible to the matrix unit; a barrier must follow.
__device__ __forceinline__ void publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Before the first product, and wherever registers of the next ones were written by other instructions.
__device__ __forceinline__ void fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving uses of accumulators across a wait.
template <int kTiles>
__device__ __forceinline__ void settle(float (&c)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
}

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

#define COSFORMER_WGMMA_D64                                                                                         \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
  "%30,%31}"
#define COSFORMER_WGMMA_D72                                                                                         \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
  "%30,%31,%32,%33,%34,%35}"
#define COSFORMER_WGMMA_TILE(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define COSFORMER_WGMMA_TILES                                                                         \
  COSFORMER_WGMMA_TILE(0), COSFORMER_WGMMA_TILE(1), COSFORMER_WGMMA_TILE(2), COSFORMER_WGMMA_TILE(3), \
      COSFORMER_WGMMA_TILE(4), COSFORMER_WGMMA_TILE(5), COSFORMER_WGMMA_TILE(6), COSFORMER_WGMMA_TILE(7)

// c = or += A·B over a depth of 16, 64 rows by eight columns for each tile of c. kRows: B's depth runs along its tile's
// rows.
template <bool kRows, int kTiles>
__device__ __forceinline__ void multiply(float (&c)[kTiles][4], const WarpgroupEngine::A& a, std::uint64_t b,
                                         bool add) {
  static_assert(kTiles == 8 || kTiles == 9);
  if constexpr (kTiles == 8) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " COSFORMER_WGMMA_D64
        ", {%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}"
        : COSFORMER_WGMMA_TILES
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "r"(add ? 1 : 0), "n"(kRows ? 1 : 0));
  } else {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %41, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n72k16.f32.bf16.bf16 " COSFORMER_WGMMA_D72
        ", {%36,%37,%38,%39}, %40, p, 1, 1, %42;\n}"
        : COSFORMER_WGMMA_TILES, COSFORMER_WGMMA_TILE(8)
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "r"(add ? 1 : 0), "n"(kRows ? 1 : 0));
  }
}

// The same with both operands in shared memory, eight columns: A's depth runs along its tile's rows, B's along columns.
__device__ __forceinline__ void multiply_shared(float (&c)[4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 1, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "l"(a), "l"(b), "r"(add ? 1 : 0));
}

#undef COSFORMER_WGMMA_D64
#undef COSFORMER_WGMMA_D72
#undef COSFORMER_WGMMA_TILE
#undef COSFORMER_WGMMA_TILES

}  // namespace wgmma
}  // namespace cosformer::kernels::cuda
