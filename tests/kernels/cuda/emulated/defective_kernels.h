// Kernels with one mistake each, and without it: whether the emulated device notices.
#pragma once

#include <cuda_runtime.h>

namespace cosformer::kernels::cuda::testing {

// A warp's row of numbers changes hands through shared memory. 64 floats of results.
cudaError_t swap_warps(float* out, bool meet);
// Blocks add up in one place, each after the one before has told, or without being told. One float.
cudaError_t add_in_turn(float* sum, bool await, bool cooperative);
// A copy that is used before it has come, or after. 128 floats there and back.
cudaError_t copy_rows(const float* from, float* to, bool wait);
// 16 x 8 sums of a product that is looked at while it is under way, or afterwards.
cudaError_t multiply_ones(float* out, bool wait);
// The same, its operand overwritten before it has been read.
cudaError_t multiply_changed(float* out);
// Half of the threads do not come to a barrier.
cudaError_t half_meets();
// Lanes of a warp at different instructions that they should have together.
cudaError_t lanes_part();
// Behind what the launch gave, and across an address that its size does not divide.
cudaError_t store_at(std::uint32_t offset);

}  // namespace cosformer::kernels::cuda::testing
