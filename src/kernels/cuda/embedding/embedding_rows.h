// Rows of an embedding's table by their numbers, on NVIDIA GPUs, alone or added to what stands there already (tokens,
// then their positions): one pass over memory where torch takes three.
//
// Pointers are device pointers. The function only enqueues work.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {

struct EmbeddingRows {
  DType dtype = DType::kFloat32;  // of table, x and y: float32, bfloat16 or float16
  std::int64_t tokens = 0, width = 0, rows = 0;
  const std::int64_t* ids = nullptr;  // [tokens]; one outside the table gives a row of NaN
  const void* table = nullptr;        // [rows, width], contiguous as all of them
  const void* x = nullptr;            // [tokens, width]; may be absent
  void* y = nullptr;                  // [tokens, width]: x + table[ids]
};

cudaError_t embedding_rows(const EmbeddingRows& problem, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
