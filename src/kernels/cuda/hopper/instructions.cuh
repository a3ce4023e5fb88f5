// Instructions of sm_90 and sm_90a by name, beside those of instructions.cuh: matrices to shared memory, registers that
// warpgroups hand each other, and asynchronous products (wgmma.cuh says how their operands lie).
#pragma once

#include "kernels/cuda/instructions.cuh"

namespace cosformer::kernels::cuda {

// 8 x 8 matrices of 16-bit numbers from the layout of accumulators; their rows lie where the lanes say.
__device__ __forceinline__ void store_matrices(std::uint32_t row, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                               std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}
__device__ __forceinline__ void store_matrices(std::uint32_t row, std::uint32_t a, std::uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(row), "r"(a), "r"(b) : "memory");
}
__device__ __forceinline__ void store_matrices_transposed(std::uint32_t row, std::uint32_t a, std::uint32_t b,
                                                          std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}

// How many registers each thread of this warpgroup has from here on.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

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
__device__ __forceinline__ void multiply(float (&c)[kTiles][4], const std::uint32_t (&a)[4], std::uint64_t b,
                                         bool add) {
  static_assert(kTiles == 8 || kTiles == 9);
  if constexpr (kTiles == 8) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " COSFORMER_WGMMA_D64
        ", {%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}"
        : COSFORMER_WGMMA_TILES
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add ? 1 : 0), "n"(kRows ? 1 : 0));
  } else {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %41, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n72k16.f32.bf16.bf16 " COSFORMER_WGMMA_D72
        ", {%36,%37,%38,%39}, %40, p, 1, 1, %42;\n}"
        : COSFORMER_WGMMA_TILES, COSFORMER_WGMMA_TILE(8)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add ? 1 : 0), "n"(kRows ? 1 : 0));
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
