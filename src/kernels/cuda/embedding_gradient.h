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
  DType dtype = DType::kFloat32;  // of dy: float32, bfloat16 or float16
  std::int64_t tokens = 0, width = 0;
  std::int64_t rows = 0;              // of the table, at most kMostEmbeddingRows
  const std::int64_t* ids = nullptr;  // [tokens]; those outside the table are left out
  const void* dy = nullptr;           // [tokens, width], contiguous
};

// Every block reads all ids of its part, so the more rows a table has, the more often they are read.
constexpr std::int64_t kMostEmbeddingRows = 4096;

// The gradient in parts, to be summed: partial [embedding_parts(problem), rows, width].
std::int64_t embedding_parts(const EmbeddingGradient& problem);
cudaError_t embedding_gradient(const EmbeddingGradient& problem, float* partial, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
