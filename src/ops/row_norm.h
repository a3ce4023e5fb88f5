// LayerNorm and RMSNorm over the last dimension, and their gradients:
//   y = (x − mean(x)) / √(variance(x) + eps) · weight + bias       with a bias: LayerNorm
//   y = x / √(mean(x²) + eps) · weight                             without one: RMSNorm
// Dispatched by device: kernels of ours on GPUs, torch's operators elsewhere.
#pragma once

#include <tuple>

#include <ATen/core/Tensor.h>

#include "ops/torch_compat.h"

namespace cosformer::ops {

// y in `type`; then what the backward pass of the same device wants to see again, undefined where that is nothing.
std::tuple<at::Tensor, at::Tensor, at::Tensor> row_norm_fwd(const at::Tensor& x, const at::Tensor& weight,
                                                            const Optional<at::Tensor>& bias, double eps,
                                                            at::ScalarType type);

// dx in x's type, dweight and dbias in weight's; dbias is undefined where there is no bias.
std::tuple<at::Tensor, at::Tensor, at::Tensor> row_norm_bwd(const at::Tensor& dy, const at::Tensor& x,
                                                            const at::Tensor& weight, const Optional<at::Tensor>& bias,
                                                            const Optional<at::Tensor>& mean,
                                                            const Optional<at::Tensor>& inverse, double eps);

}  // namespace cosformer::ops
