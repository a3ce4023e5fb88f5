// x·weightᵀ + bias of a layer. torch's own C++ layer adds the bias by a kernel of its own and sums its gradient over
// all tokens at once, which on a GPU takes longer than the products.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

namespace cosformer::nn {

at::Tensor linear(const torch::nn::Linear& layer, const at::Tensor& x);

}  // namespace cosformer::nn
