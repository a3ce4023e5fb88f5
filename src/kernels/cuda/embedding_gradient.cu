#include <cuda_runtime.h>

#include "kernels/cuda/device_numbers.cuh"
#include "kernels/cuda/embedding_gradient.h"
#include "kernels/cuda/embedding_gradient_body.h"

namespace cosformer::kernels::cuda {
namespace {

template <class Io>
__global__ void __launch_bounds__(kWarpLanes)
    embedding_kernel(EmbeddingSizes s, const std::int64_t* __restrict__ ids, const typename Io::Stored* __restrict__ dy,
                     float* __restrict__ partial) {
  extern __shared__ float window[];
  embedding_gradient_lane<Io>(s, ids, dy, partial, blockIdx.x, static_cast<int>(threadIdx.x), window);
}

}  // namespace

std::int64_t embedding_parts(const EmbeddingGradient& p) {
  return embedding_sizes(p.tokens, p.width, p.rows).parts;
}

cudaError_t embedding_gradient(const EmbeddingGradient& p, float* partial, cudaStream_t stream) {
  if (p.tokens < 0 || p.width < 0 || p.rows < 0 || p.rows > kMostEmbeddingRows) return cudaErrorInvalidValue;
  if (p.rows * p.width == 0) return cudaSuccess;
  const EmbeddingSizes s = embedding_sizes(p.tokens, p.width, p.rows);
  const std::size_t bytes = static_cast<std::size_t>(s.window_rows) * kWarpLanes * sizeof(float);
  return with_numbers(p.dtype, [&](auto numbers) {
    using Io = decltype(numbers);
    embedding_kernel<Io><<<static_cast<unsigned>(embedding_warps(s)), kWarpLanes, bytes, stream>>>(
        s, p.ids, static_cast<const typename Io::Stored*>(p.dy), partial);
    return cudaGetLastError();
  });
}

}  // namespace cosformer::kernels::cuda
