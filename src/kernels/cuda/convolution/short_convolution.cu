#include "kernels/cuda/convolution/short_convolution.h"
#include "kernels/cuda/convolution/short_convolution_body.h"
#include "kernels/cuda/device_numbers.cuh"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class Io, int kLanes>
__global__ void __launch_bounds__(kThreads)
    convolve_kernel(ConvolutionSizes s, TokenRows<Io> x, const float* __restrict__ weight, bool reversed,
                    typename Io::Stored* __restrict__ y) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item < convolution_items(s, kLanes, kTileTokens)) convolve_item<Io, kLanes>(s, x, weight, reversed, y, item);
}

template <class Io, int kLanes>
__global__ void __launch_bounds__(kThreads)
    weight_gradient_kernel(ConvolutionSizes s, TokenRows<Io> x, TokenRows<Io> dy, float* __restrict__ partial) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item < convolution_items(s, kLanes, kPartTokens)) weight_gradient_item<Io, kLanes>(s, x, dy, partial, item);
}

ConvolutionSizes sizes_of(const ShortConvolution& p) {
  return {p.batch, p.time, p.channels, p.width, p.before};
}

template <class Io>
TokenRows<Io> rows_of(const TokenView& view) {
  return {static_cast<const typename Io::Stored*>(view.data), view.batch_stride, view.time_stride};
}

// Eight channels at once, where every row of them is aligned.
constexpr int kWide = 8;
bool is_wide(const ShortConvolution& p, const TokenView& view) {
  return p.channels % kWide == 0 && view.batch_stride % kWide == 0 && view.time_stride % kWide == 0 &&
         reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
}

unsigned blocks_for(const ShortConvolution& p, int lanes, std::int64_t tokens) {
  const std::int64_t items = p.batch * parts_of(p.time, tokens) * (p.channels / lanes);
  return static_cast<unsigned>(parts_of(items, kThreads));
}

bool is_possible(const ShortConvolution& p) {
  return p.batch >= 0 && p.time >= 0 && p.channels >= 0 && p.width > 0 && p.before >= 0 && p.before < p.width;
}

}  // namespace

cudaError_t short_convolution(const ShortConvolution& p, const float* weight, bool reversed, void* y,
                              cudaStream_t stream) {
  if (!is_possible(p)) return cudaErrorInvalidValue;
  if (p.batch * p.time * p.channels == 0) return cudaSuccess;
  const bool wide = is_wide(p, p.x) && reinterpret_cast<std::uintptr_t>(y) % 16 == 0;
  return with_numbers(p.dtype, [&](auto numbers) {
    using Io = decltype(numbers);
    auto* out = static_cast<typename Io::Stored*>(y);
    const auto launch = [&](auto kernel, int lanes) {
      return launch_kernel(kernel, blocks_for(p, lanes, kTileTokens), kThreads, stream, sizes_of(p), rows_of<Io>(p.x),
                           weight, reversed, out);
    };
    return wide ? launch(convolve_kernel<Io, kWide>, kWide) : launch(convolve_kernel<Io, 1>, 1);
  });
}

std::int64_t weight_parts(const ShortConvolution& p) {
  return p.batch * parts_of(p.time, kPartTokens);
}

cudaError_t short_convolution_weight_gradient(const ShortConvolution& p, const TokenView& dy, float* partial,
                                              cudaStream_t stream) {
  if (!is_possible(p)) return cudaErrorInvalidValue;
  if (p.batch * p.time * p.channels == 0) return cudaSuccess;
  const bool wide = is_wide(p, p.x) && is_wide(p, dy);
  return with_numbers(p.dtype, [&](auto numbers) {
    using Io = decltype(numbers);
    const auto launch = [&](auto kernel, int lanes) {
      return launch_kernel(kernel, blocks_for(p, lanes, kPartTokens), kThreads, stream, sizes_of(p), rows_of<Io>(p.x),
                           rows_of<Io>(dy), partial);
    };
    return wide ? launch(weight_gradient_kernel<Io, kWide>, kWide) : launch(weight_gradient_kernel<Io, 1>, 1);
  });
}

}  // namespace cosformer::kernels::cuda
