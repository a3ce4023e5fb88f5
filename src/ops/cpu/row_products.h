// x·wᵀ (+ bias) for a few rows on the CPU in float32, each number with the same bits whatever rows are beside it
// (kernels/cpu/products/row_products.h). Without gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::ops {

// x [..., k], w [columns, k], bias [columns] or undefined → [..., columns].
at::Tensor row_products(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias = {});

}  // namespace cosformer::ops
