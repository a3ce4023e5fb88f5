#include "kernels/cuda/device_numbers.cuh"
#include "kernels/cuda/embedding/embedding_rows.h"
#include "kernels/cuda/embedding/embedding_rows_body.h"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kAccessBytes = 16;

template <class Io, int kLanes>
__global__ void __launch_bounds__(kThreads) rows_kernel(RowsToEmbed<typename Io::Stored> p) {
  embed_piece<Io, kLanes>(p, static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x);
}

template <class Io, int kLanes>
cudaError_t launch(const RowsToEmbed<typename Io::Stored>& p, cudaStream_t stream) {
  const std::int64_t blocks = parts_of(p.tokens * (p.width / kLanes), kThreads);
  return launch_kernel(rows_kernel<Io, kLanes>, static_cast<unsigned>(blocks), kThreads, stream, p);
}

bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kAccessBytes == 0;
}

}  // namespace

cudaError_t embedding_rows(const EmbeddingRows& p, cudaStream_t stream) {
  if (p.tokens < 0 || p.width < 0 || p.rows < 0) return cudaErrorInvalidValue;
  if (p.tokens * p.width == 0) return cudaSuccess;
  return with_numbers(p.dtype, [&](auto numbers) {
    using Io = decltype(numbers);
    using Stored = typename Io::Stored;
    constexpr int kLanes = kAccessBytes / sizeof(Stored);
    const RowsToEmbed<Stored> rows{p.tokens,
                                   p.width,
                                   p.rows,
                                   p.ids,
                                   static_cast<const Stored*>(p.table),
                                   static_cast<const Stored*>(p.x),
                                   static_cast<Stored*>(p.y)};
    const bool packed = p.width % kLanes == 0 && aligned(p.table) && aligned(p.x) && aligned(p.y);
    return packed ? launch<Io, kLanes>(rows, stream) : launch<Io, 1>(rows, stream);
  });
}

}  // namespace cosformer::kernels::cuda
