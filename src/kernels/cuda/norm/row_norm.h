// LayerNorm and RMSNorm of rows, on NVIDIA GPUs: every row is read once and stays in registers.
//
//   y = (x − mean(x)) / √(variance(x) + eps) · weight + bias       centred
//   y = x / √(mean(x²) + eps) · weight                             not centred
//
// Pointers are device pointers; rows are contiguous and lie behind each other. The functions only enqueue work,
// allocate nothing and use no atomics: same shapes and inputs, same bits. Rows of 32, 64 and the multiples of 128
// numbers up to 1,024, in aligned memory, are the fast ones; others work.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {

struct RowNorm {
  DType x_dtype = DType::kFloat32;  // of x and dx: bfloat16, float16 or float32
  DType y_dtype = DType::kFloat32;  // of y and dy: x's, or any where x is float32
  std::int64_t rows = 0, width = 0;
  float eps = 0;
  bool centered = true;
  const void* x = nullptr;
  const float* weight = nullptr;
};

// `bias` may be null.
cudaError_t row_norm_fwd(const RowNorm& problem, const float* bias, void* y, cudaStream_t stream);

// dx in x's type, dweight and dbias [width]; dbias only where rows are centred. The weights' gradients are summed in
// parts, a number that depends on the shape alone, in a workspace of row_norm_workspace_floats(problem).
std::int64_t row_norm_workspace_floats(const RowNorm& problem);
cudaError_t row_norm_bwd(const RowNorm& problem, const void* dy, void* dx, float* dweight, float* dbias,
                         float* workspace, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
