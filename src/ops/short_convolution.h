// A depthwise convolution over a few neighbouring tokens, and its gradients:
//   y[b, t, c] = Σ_j weight[j, c] x[b, t + j − before, c]      tokens beyond the ends count as zero
// x [B, T, C], weight [width, C]. Dispatched by device: a kernel of ours on GPUs, torch's operators elsewhere.
#pragma once

#include <cstdint>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace cosformer::ops {

at::Tensor short_convolution_fwd(const at::Tensor& x, const at::Tensor& weight, std::int64_t before);

// dx in x's type, dweight in weight's.
std::tuple<at::Tensor, at::Tensor> short_convolution_bwd(const at::Tensor& dy, const at::Tensor& x,
                                                         const at::Tensor& weight, std::int64_t before);

}  // namespace cosformer::ops
