// The depthwise convolution over a few neighbouring tokens, on NVIDIA GPUs: one pass over memory where a composition of
// torch's operators takes one for each tap.
//
//   y[b, t, c] = Σ_j w[j, c] x[b, t + j − before, c]      tokens beyond the ends count as zero
//
// Pointers are device pointers. The functions only enqueue work and use no atomics: same inputs, same bits.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {

// [batch, time, channels]; channels are contiguous.
struct TokenView {
  const void* data = nullptr;
  std::int64_t batch_stride = 0, time_stride = 0;
};

struct ShortConvolution {
  DType dtype = DType::kBFloat16;  // of x, y and dy: bfloat16, float16 or float32
  std::int64_t batch = 0, time = 0, channels = 0;
  std::int64_t width = 0, before = 0;
  TokenView x;
};

// `y` is contiguous. `reversed`: the taps in the opposite order, which with before' = width − 1 − before and dy in
// x's place is the gradient of x.
cudaError_t short_convolution(const ShortConvolution& problem, const float* weight, bool reversed, void* y,
                              cudaStream_t stream);

// The gradient of the weights in parts, to be summed: partial [weight_parts(problem), width, channels].
std::int64_t weight_parts(const ShortConvolution& problem);
cudaError_t short_convolution_weight_gradient(const ShortConvolution& problem, const TokenView& dy, float* partial,
                                              cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
