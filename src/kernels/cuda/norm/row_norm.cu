#include <algorithm>
#include <type_traits>

#include "kernels/cuda/device_numbers.cuh"
#include "kernels/cuda/instructions.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/norm/row_norm.h"
#include "kernels/cuda/norm/row_norm_body.h"
#include "kernels/cuda/norm/row_norm_ragged.h"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kThreads = 128, kWarp = 32;
constexpr int kSumColumns = 32, kSumRows = 32;  // of a block that adds up parts

// kLanes neighbouring lanes of a warp. All teams of a warp call sum() together.
template <int kTeamLanes>
struct WarpTeam {
  static constexpr int kLanes = kTeamLanes, kHeld = 1;
  static constexpr int kInBlock = kThreads / kLanes;
  static __device__ __forceinline__ int lane(int) { return static_cast<int>(threadIdx.x) % kLanes; }
  static __device__ __forceinline__ int in_block() { return static_cast<int>(threadIdx.x) / kLanes; }
  template <int kRows>
  static __device__ __forceinline__ void sum(const float (&parts)[kRows][1], float (&totals)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) totals[r] = parts[r][0];
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) totals[r] += __shfl_xor_sync(0xffffffffU, totals[r], step);
    }
  }
};

template <class XIo, class YIo, class Layout>
__global__ void __launch_bounds__(kThreads)
    normalize_kernel(RowNormSizes s, const typename XIo::Stored* __restrict__ x, const float* __restrict__ weight,
                     const float* __restrict__ bias, typename YIo::Stored* __restrict__ y) {
  using Team = typename Layout::Team;
  const std::int64_t team = static_cast<std::int64_t>(blockIdx.x) * Team::kInBlock + Team::in_block();
  normalize_rows<XIo, YIo, Layout>(Team(), s, x, weight, bias, y, team * Layout::kRows);
}

// The sums of all teams of a block, in the order of the teams; everybody calls it.
template <class Layout>
__device__ __forceinline__ void store_block_sum(const float (&sum)[1][Layout::kNumbers], float* __restrict__ to) {
  using Team = typename Layout::Team;
  using Parts = float[Team::kInBlock][Layout::kWidth];
  COSFORMER_SHARED(Parts, all);
  __syncthreads();  // whoever still reads an earlier sum
#pragma unroll
  for (int n = 0; n < Layout::kNumbers; ++n) {
    all[Team::in_block()][Layout::column(Team::lane(0), n / Layout::kPack) + n % Layout::kPack] = sum[0][n];
  }
  __syncthreads();
  for (int column = static_cast<int>(threadIdx.x); column < Layout::kWidth; column += kThreads) {
    float total = 0;
#pragma unroll
    for (int team = 0; team < Team::kInBlock; ++team) total += all[team][column];
    to[column] = total;
  }
}

// Each block is one part of the weights' gradients: partial [parts, centred ? 2 : 1, width].
template <class XIo, class YIo, class Layout>
__global__ void __launch_bounds__(kThreads)
    differentiate_kernel(RowNormSizes s, const typename XIo::Stored* __restrict__ x,
                         const typename YIo::Stored* __restrict__ dy, const float* __restrict__ weight,
                         typename XIo::Stored* __restrict__ dx, float* __restrict__ partial) {
  using Team = typename Layout::Team;
  constexpr int kBlockRows = Team::kInBlock * Layout::kRows;
  WeightSums<Layout> sums{};
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kBlockRows; first < s.rows;
       first += static_cast<std::int64_t>(gridDim.x) * kBlockRows) {
    differentiate_rows<XIo, YIo, Layout>(Team(), s, x, dy, weight, dx, first + Team::in_block() * Layout::kRows, sums);
  }
  const std::int64_t sets = s.centered ? 2 : 1;
  store_block_sum<Layout>(sums.weight, partial + blockIdx.x * sets * Layout::kWidth);
  if (s.centered) store_block_sum<Layout>(sums.bias, partial + (blockIdx.x * sets + 1) * Layout::kWidth);
}

template <class XIo, class YIo>
__global__ void __launch_bounds__(kThreads)
    normalize_ragged_kernel(RowNormSizes s, const typename XIo::Stored* __restrict__ x,
                            const float* __restrict__ weight, const float* __restrict__ bias,
                            typename YIo::Stored* __restrict__ y) {
  using Team = WarpTeam<kWarp>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Team::kInBlock + Team::in_block();
  if (row < s.rows) normalize_ragged<XIo, YIo>(Team(), s, x + row * s.width, weight, bias, y + row * s.width);
}

// Here each warp is a part, and its sums lie in `partial` from the start: no width is too large.
template <class XIo, class YIo>
__global__ void __launch_bounds__(kThreads)
    differentiate_ragged_kernel(RowNormSizes s, const typename XIo::Stored* __restrict__ x,
                                const typename YIo::Stored* __restrict__ dy, const float* __restrict__ weight,
                                typename XIo::Stored* __restrict__ dx, float* __restrict__ partial,
                                std::int64_t parts) {
  using Team = WarpTeam<kWarp>;
  const std::int64_t part = static_cast<std::int64_t>(blockIdx.x) * Team::kInBlock + Team::in_block();
  if (part >= parts) return;
  float* weight_sum = partial + part * (s.centered ? 2 : 1) * s.width;
  float* bias_sum = weight_sum + s.width;
  each_column(Team(), s.width, [&](int, std::int64_t column) {
    weight_sum[column] = 0;
    if (s.centered) bias_sum[column] = 0;
  });
  for (std::int64_t row = part; row < s.rows; row += parts) {
    differentiate_ragged<XIo, YIo>(Team(), s, x + row * s.width, dy + row * s.width, weight, dx + row * s.width,
                                   weight_sum, bias_sum);
  }
}

// The parts of each column in a fixed order: every kSumRows-th by a thread, then their sums.
__global__ void __launch_bounds__(kSumColumns* kSumRows)
    sum_parts_kernel(const float* __restrict__ partial, std::int64_t parts, std::int64_t columns, std::int64_t width,
                     float* __restrict__ dweight, float* __restrict__ dbias) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t part = threadIdx.y; part < parts; part += kSumRows) sum += partial[part * columns + column];
  }
  using Parts = float[kSumRows][kSumColumns];
  COSFORMER_SHARED(Parts, all);
  all[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float total = 0;
#pragma unroll
  for (int r = 0; r < kSumRows; ++r) total += all[r][threadIdx.x];
  (column < width ? dweight : dbias - width)[column] = total;
}

constexpr int kMostGroups = 8;  // of 128 numbers
constexpr std::int64_t kNarrow = 128;

bool has_fast_width(std::int64_t width) {
  return width == 32 || width == 64 || (width > 0 && width % kNarrow == 0 && width <= kMostGroups * kNarrow);
}

// Rows that a team takes at once, so that enough of them are under way.
constexpr int rows_together(int numbers) {
  return numbers <= 4 ? 4 : numbers <= 8 ? 2 : 1;
}

// Parts of the weights' gradients: enough to fill a large device once, whichever device it is.
std::int64_t parts_of_rows(const RowNorm& p) {
  if (!has_fast_width(p.width)) return std::clamp<std::int64_t>(p.rows / 8, 1, 1024);
  const int lanes = static_cast<int>(std::min<std::int64_t>(p.width / 4, kWarp));
  const int numbers = static_cast<int>(p.width) / lanes;
  // 132 multiprocessors times the blocks whose registers fit into one.
  const std::int64_t most = 132 * (numbers <= 4 ? 7 : numbers <= 8 ? 6 : numbers <= 16 ? 5 : 3);
  return std::clamp<std::int64_t>(parts_of(p.rows, kThreads / lanes * rows_together(numbers)), 1, most);
}

bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

bool is_possible(const RowNorm& p) {
  return p.rows >= 0 && p.width > 0 && (p.y_dtype == p.x_dtype || p.x_dtype == DType::kFloat32);
}

RowNormSizes sizes_of(const RowNorm& p) {
  return {p.rows, p.width, p.eps, p.centered};
}

// Calls `body` with the number formats of x and y as types.
template <class Body>
cudaError_t with_numbers(const RowNorm& p, const Body& body) {
  using Floats = DeviceNumbers<float>;
  using BFloats = DeviceNumbers<__nv_bfloat16>;
  using Halves = DeviceNumbers<__half>;
  const bool wide = p.x_dtype == DType::kFloat32;
  switch (p.y_dtype) {
    case DType::kFloat32: return body(Floats(), Floats());
    case DType::kBFloat16: return wide ? body(Floats(), BFloats()) : body(BFloats(), BFloats());
    case DType::kFloat16: return wide ? body(Floats(), Halves()) : body(Halves(), Halves());
    case DType::kFloat64: break;
  }
  return cudaErrorInvalidValue;
}

// Calls `body` with the layout of a fast width. Two-byte numbers are taken eight at a time where they can be.
template <class XIo, int kGroups = kMostGroups, class Body>
void with_layout(std::int64_t width, const Body& body) {
  if constexpr (kGroups == 0) {
    if (width == 64) body(RowLayout<WarpTeam<16>, 1, 4, rows_together(4)>());
    if (width == 32) body(RowLayout<WarpTeam<8>, 1, 4, rows_together(4)>());
  } else if (width == kGroups * kNarrow) {
    constexpr int kPack = sizeof(typename XIo::Stored) == 2 && kGroups % 2 == 0 ? 8 : 4;
    body(RowLayout<WarpTeam<kWarp>, 4 * kGroups / kPack, kPack, rows_together(4 * kGroups)>());
  } else {
    with_layout<XIo, kGroups - 1>(width, body);
  }
}

}  // namespace

cudaError_t row_norm_fwd(const RowNorm& p, const float* bias, void* y, cudaStream_t stream) {
  if (!is_possible(p)) return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  const bool fast =
      has_fast_width(p.width) && is_aligned(p.x) && is_aligned(y) && is_aligned(p.weight) && is_aligned(bias);
  return with_numbers(p, [&](auto x_numbers, auto y_numbers) {
    using XIo = decltype(x_numbers);
    using YIo = decltype(y_numbers);
    const auto* x = static_cast<const typename XIo::Stored*>(p.x);
    auto* to = static_cast<typename YIo::Stored*>(y);
    if (!fast) {
      const auto blocks = static_cast<unsigned>(parts_of(p.rows, kThreads / kWarp));
      return launch_kernel(normalize_ragged_kernel<XIo, YIo>, blocks, kThreads, stream, sizes_of(p), x, p.weight, bias,
                           to);
    }
    cudaError_t status = cudaErrorInvalidValue;
    with_layout<XIo>(p.width, [&](auto layout) {
      using Layout = decltype(layout);
      const auto blocks = static_cast<unsigned>(parts_of(p.rows, Layout::Team::kInBlock * Layout::kRows));
      status = launch_kernel(normalize_kernel<XIo, YIo, Layout>, blocks, kThreads, stream, sizes_of(p), x, p.weight,
                             bias, to);
    });
    return status;
  });
}

std::int64_t row_norm_workspace_floats(const RowNorm& p) {
  return parts_of_rows(p) * (p.centered ? 2 : 1) * p.width;
}

cudaError_t row_norm_bwd(const RowNorm& p, const void* dy, void* dx, float* dweight, float* dbias, float* workspace,
                         cudaStream_t stream) {
  if (!is_possible(p)) return cudaErrorInvalidValue;
  const bool fast =
      has_fast_width(p.width) && is_aligned(p.x) && is_aligned(dy) && is_aligned(dx) && is_aligned(p.weight);
  // With no rows there are no blocks to launch but the ones that write sums of nothing.
  const std::int64_t parts = parts_of_rows(p), columns = (p.centered ? 2 : 1) * p.width;
  const cudaError_t status = with_numbers(p, [&](auto x_numbers, auto y_numbers) {
    using XIo = decltype(x_numbers);
    using YIo = decltype(y_numbers);
    const auto* x = static_cast<const typename XIo::Stored*>(p.x);
    const auto* slopes = static_cast<const typename YIo::Stored*>(dy);
    auto* to = static_cast<typename XIo::Stored*>(dx);
    if (!fast) {
      const auto blocks = static_cast<unsigned>(parts_of(parts, kThreads / kWarp));
      return launch_kernel(differentiate_ragged_kernel<XIo, YIo>, blocks, kThreads, stream, sizes_of(p), x, slopes,
                           p.weight, to, workspace, parts);
    }
    cudaError_t launched = cudaErrorInvalidValue;
    with_layout<XIo>(p.width, [&](auto layout) {
      launched = launch_kernel(differentiate_kernel<XIo, YIo, decltype(layout)>, static_cast<unsigned>(parts), kThreads,
                               stream, sizes_of(p), x, slopes, p.weight, to, workspace);
    });
    return launched;
  });
  if (status != cudaSuccess) return status;
  return launch_kernel(sum_parts_kernel, static_cast<unsigned>(parts_of(columns, kSumColumns)),
                       dim3(kSumColumns, kSumRows), stream, workspace, parts, columns, p.width, dweight, dbias);
}

}  // namespace cosformer::kernels::cuda
