#include "kernels/cuda/device_numbers.cuh"
#include "kernels/cuda/embedding/embedding_gradient.h"
#include "kernels/cuda/embedding/embedding_gradient_body.h"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kBlockWarps = 4;
constexpr int kThreads = kBlockWarps * kWarpLanes;

template <class Io, class FromIo>
__global__ void __launch_bounds__(kThreads)
    level_kernel(EmbeddingLevel<typename Io::Stored, typename FromIo::Stored> p, std::int64_t warps) {
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
  if (warp < warps) sum_chunk_lane<Io, FromIo>(p, warp, static_cast<int>(threadIdx.x % kWarpLanes));
}

template <class Io, class FromIo>
cudaError_t launch(const EmbeddingLevel<typename Io::Stored, typename FromIo::Stored>& p, cudaStream_t stream) {
  const std::int64_t warps = embedding_chunks(p.tokens) * embedding_slices(p.width);
  return launch_kernel(level_kernel<Io, FromIo>, static_cast<unsigned>(parts_of(warps, kBlockWarps)), kThreads, stream,
                       p, warps);
}

}  // namespace

std::int64_t embedding_workspace(const EmbeddingGradient& p) {
  std::int64_t floats = 0;
  for (std::int64_t tokens = p.tokens; embedding_edges(tokens, p.width) > 0; tokens = 2 * embedding_chunks(tokens)) {
    floats += embedding_edges(tokens, p.width);
  }
  return floats;
}

cudaError_t embedding_gradient(const EmbeddingGradient& p, float* workspace, cudaStream_t stream) {
  if (p.tokens < 0 || p.width < 0 || p.rows < 0) return cudaErrorInvalidValue;
  if (p.rows * p.width == 0) return cudaSuccess;
  // Rows that no token has.
  const std::size_t bytes = static_cast<std::size_t>(p.rows * p.width) * size_of(p.dtype);
  if (const cudaError_t status = cudaMemsetAsync(p.gradient, 0, bytes, stream); status != cudaSuccess) return status;
  if (p.tokens == 0) return cudaSuccess;
  return with_numbers(p.dtype, [&](auto numbers) {
    using Io = decltype(numbers);
    using Stored = typename Io::Stored;
    std::int64_t tokens = p.tokens;
    const auto edges_of = [&](std::int64_t count) { return workspace + 2 * embedding_chunks(count) * p.width; };
    auto* edge_ids = reinterpret_cast<std::int32_t*>(edges_of(tokens));
    cudaError_t status = launch<Io, Io>({tokens, p.width, p.rows, p.ids, p.order, static_cast<const Stored*>(p.dy),
                                         static_cast<Stored*>(p.gradient), workspace, edge_ids},
                                        stream);
    while (status == cudaSuccess && embedding_edges(tokens, p.width) > 0) {
      const float* from = workspace;
      const std::int32_t* ids = edge_ids;
      workspace += embedding_edges(tokens, p.width);
      tokens = 2 * embedding_chunks(tokens);
      edge_ids = reinterpret_cast<std::int32_t*>(edges_of(tokens));
      status = launch<Io, DeviceNumbers<float>>(
          {tokens, p.width, p.rows, ids, nullptr, from, static_cast<Stored*>(p.gradient), workspace, edge_ids}, stream);
    }
    return status;
  });
}

}  // namespace cosformer::kernels::cuda
