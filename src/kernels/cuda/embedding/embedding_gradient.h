// The gradient of an embedding's table, on NVIDIA GPUs: the rows of dy, added up by which row of the table each came
// from. torch's own adds them in an order that changes from run to run; here same inputs give the same bits.
//
// Pointers are device pointers. The functions only enqueue work and use no atomics.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {

struct EmbeddingGradient {
  DType dtype = DType::kFloat32;  // of dy and gradient: float32, bfloat16 or float16
  std::int64_t tokens = 0, width = 0;
  std::int64_t rows = 0;                // of the table
  const std::int32_t* ids = nullptr;    // [tokens], ascending; those outside the table are left out
  const std::int64_t* order = nullptr;  // [tokens]: which row of dy each of these ids came with
  const void* dy = nullptr;             // [tokens, width], contiguous
  void* gradient = nullptr;             // [rows, width], contiguous
};

// How many floats of workspace it needs.
std::int64_t embedding_workspace(const EmbeddingGradient& problem);
cudaError_t embedding_gradient(const EmbeddingGradient& problem, float* workspace, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
