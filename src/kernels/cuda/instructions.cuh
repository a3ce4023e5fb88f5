// The device's instructions that C++ has no words for, by name. Nothing else of the kernels is in the device's own
// language but hopper/{mbarrier,tma,instructions}.cuh, which are Hopper's: whoever brings these four can
// run the kernels elsewhere, as the tests do on a host (tests/kernels/cuda/emulated).
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace cosformer::kernels::cuda {

// --- Shared memory, by 32-bit addresses: half the registers of pointers, and their own instructions.

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
// Declares a variable of the block.
#define COSFORMER_SHARED(type, name) __shared__ type name
// Declares what a launch gave the block. No function, and aligned as its tiles need and no more: the compiler makes
// other code of some kernels otherwise.
#define COSFORMER_LAUNCHED_SHARED(name, alignment) \
  extern __shared__ __align__(alignment)           \
  unsigned char name[]
__device__ __forceinline__ uint4 load_shared_16(std::uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}
__device__ __forceinline__ uint2 load_shared_8(std::uint32_t address) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ float2 load_shared_pair(std::uint32_t address) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ void store_shared_16(std::uint32_t address, const uint4& x) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}
__device__ __forceinline__ void store_shared_4(std::uint32_t address, std::uint32_t x) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}
__device__ __forceinline__ void store_shared_2(std::uint32_t address, std::uint32_t x) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(static_cast<std::uint16_t>(x)) : "memory");
}
__device__ __forceinline__ void store_shared_float(std::uint32_t address, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}

// --- Global memory.

// The compiler makes four stores of an assignment.
__device__ __forceinline__ void store_global_16(void* address, const uint4& x) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}
// What this thread and, by barriers, its block have written before is seen by who acquires the number.
__device__ __forceinline__ void store_release(unsigned* address, unsigned x) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(x) : "memory");
}
__device__ __forceinline__ unsigned load_acquire(const unsigned* address) {
  unsigned x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(address) : "memory");
  return x;
}

// --- Copies from global to shared memory that go on while the thread does; zeros where not `valid`.

template <int kBytes>
__device__ __forceinline__ void copy_async(std::uint32_t shared, const void* global, bool valid) {
  static_assert(kBytes == 16 || kBytes == 4);
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(valid ? 4 : 0)
                 : "memory");
  }
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until all groups but the kPending latest have come, for this thread.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// --- Barriers of some of a block's threads, by number; 0 is __syncthreads.

template <int kThreads>
__device__ __forceinline__ void sync_named_barrier(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
// A number that is known is part of the instruction.
template <int kBarrier, int kThreads>
__device__ __forceinline__ void sync_named_barrier() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
template <int kBarrier, int kThreads>
__device__ __forceinline__ void arrive_at_named_barrier() {
  asm volatile("bar.arrive %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}

// --- Two bfloat16 or float16 numbers in a register.

__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ std::uint32_t pack_f16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ std::uint32_t add_pair(std::uint32_t a, std::uint32_t b) {
  std::uint32_t c;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ __forceinline__ std::uint32_t multiply_pair(std::uint32_t a, std::uint32_t b) {
  std::uint32_t c;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
// max(a·b, 0) for pairs.
__device__ __forceinline__ std::uint32_t multiply_pair_relu(std::uint32_t a, std::uint32_t b) {
  std::uint32_t c;
  asm("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(0x80008000U));
  return c;
}
__device__ __forceinline__ std::uint32_t relu_pair(std::uint32_t a) {
  std::uint32_t c;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(0U));
  return c;
}

// --- The matrix unit (mma.cuh says how operands lie). TF32: float's range, and as many digits as float16 has.

__device__ __forceinline__ std::uint32_t tf32_of(float x) {
  std::uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ void multiply_tf32(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiply_f16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiply_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// 8 x 8 matrices of 16-bit numbers, whose rows lie where the lanes say: lanes 0 to 7 for the first matrix, and so on.
__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[2], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}

// --- What the compiler is kept from knowing.

// x, and what is made from it is made anew: kept addresses would cost registers.
__device__ __forceinline__ int anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ __forceinline__ void forget(int& a, int& b, int& c, int& d) {
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
}
__device__ __forceinline__ void forget(float& x) {
  asm volatile("" : "+f"(x));
}
// What follows does not begin before x and y are there.
__device__ __forceinline__ void hold(float& x, float& y) {
  asm volatile("" : "+f"(x), "+f"(y)::"memory");
}

}  // namespace cosformer::kernels::cuda
