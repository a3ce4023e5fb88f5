#include "defective_kernels.h"

#include "kernels/cuda/hopper/wgmma.cuh"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda::testing {
namespace {

__global__ void swap_warps_kernel(float* out, bool meet) {
  using Numbers = float[64];
  COSFORMER_SHARED(Numbers, numbers);
  const unsigned thread = threadIdx.x;
  numbers[thread] = static_cast<float>(thread);
  if (meet) __syncthreads();
  out[thread] = numbers[63 - thread];
}

__global__ void add_in_turn_kernel(unsigned* told, float* sum, bool await) {
  if (await) {
    while (load_acquire(told) < blockIdx.x) {
    }
  }
  *sum += static_cast<float>(blockIdx.x + 1);
  store_release(told, blockIdx.x + 1);
}

__global__ void copy_rows_kernel(const float* from, float* to, bool wait) {
  COSFORMER_LAUNCHED_SHARED(shared, 128);
  const unsigned first = threadIdx.x * 4;
  float* const own = reinterpret_cast<float*>(shared) + first;
  copy_async<16>(shared_address(own), from + first, true);
  commit_copies();
  if (wait) wait_copies<0>();
  for (unsigned i = 0; i < 4; ++i) to[first + i] = own[i];
}

// Rows of 64 columns; A and B are the same tile of ones.
__global__ void multiply_kernel(float* out, bool wait, bool change) {
  COSFORMER_LAUNCHED_SHARED(shared, 1024);
  const unsigned thread = threadIdx.x;
  const std::uint32_t base = shared_address(shared);
  for (unsigned at = thread * 4; at < 64 * 128; at += 128 * 4) store_shared_4(base + at, pack_bf16(1.0F, 1.0F));
  wgmma::publish_shared();
  __syncthreads();
  HopperEngine::A a;
  for (std::uint32_t& pair : a.r) pair = pack_bf16(1.0F, 1.0F);
  float c[8][4] = {};
  wgmma::fence();
  wgmma::multiply<true>(c, a, wgmma::descriptor(base), false);
  wgmma::commit();
  if (change && thread == 0) store_shared_4(base, 0);
  if (wait) wgmma::wait<0>();
  if (thread < 32) {
    for (int i = 0; i < 4; ++i) out[thread * 4 + static_cast<unsigned>(i)] = c[0][i];
  }
  if (!wait) wgmma::wait<0>();
}

__global__ void half_meets_kernel() {
  if (threadIdx.x < 32) sync_named_barrier<1, 64>();
}

__global__ void lanes_part_kernel() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __shfl_sync(0xffffffffU, 1, 0);
  }
}

__global__ void store_kernel(std::uint32_t offset) {
  COSFORMER_LAUNCHED_SHARED(shared, 128);
  store_shared_16(shared_address(shared) + offset, make_uint4(1, 2, 3, 4));
}

}  // namespace

cudaError_t swap_warps(float* out, bool meet) {
  return launch_kernel(swap_warps_kernel, 1, 64, nullptr, out, meet);
}
cudaError_t add_in_turn(float* sum, bool await, bool cooperative) {
  unsigned told = 0;
  cudaLaunchAttribute attribute{cudaLaunchAttributeCooperative, {cooperative ? 1 : 0}};
  const cudaLaunchConfig_t config{3, 1, 0, nullptr, &attribute, 1};
  return cudaLaunchKernelEx(&config, add_in_turn_kernel, &told, sum, await);
}
cudaError_t copy_rows(const float* from, float* to, bool wait) {
  return launch_with_shared(nullptr, copy_rows_kernel, 1, 32, 512, nullptr, from, to, wait);
}
cudaError_t multiply_ones(float* out, bool wait) {
  return launch_with_shared(nullptr, multiply_kernel, 1, 128, 8192, nullptr, out, wait, false);
}
cudaError_t multiply_changed(float* out) {
  return launch_with_shared(nullptr, multiply_kernel, 1, 128, 8192, nullptr, out, true, true);
}
cudaError_t half_meets() {
  return launch_kernel(half_meets_kernel, 1, 64, nullptr);
}
cudaError_t lanes_part() {
  return launch_kernel(lanes_part_kernel, 1, 32, nullptr);
}
cudaError_t store_at(std::uint32_t offset) {
  return launch_with_shared(nullptr, store_kernel, 1, 1, 256, nullptr, offset);
}

}  // namespace cosformer::kernels::cuda::testing
