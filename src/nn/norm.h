// LayerNorm and RMSNorm behind one name.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace cosformer::nn {

// x / √(mean(x²) + eps) · weight over the last dimension, in x's type.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps = 1e-6);

// Reads every row once on GPUs.
//
// Under autocast torch's LayerNorm gives float32 there, and whatever multiplies matrices next rounds that by a
// kernel of its own. Hence two forms: forward() keeps the type that torch gives, which residual streams, pooling and
// losses go on with; forward_for_products() is for results that only enter products of matrices, and rounds them as
// they are written.
class Norm : public torch::nn::Module {
 public:
  Norm(const std::string& kind, std::int64_t width);  // "layer" or "rms"
  at::Tensor forward(const at::Tensor& x);
  at::Tensor forward_for_products(const at::Tensor& x);

  at::Tensor weight, bias;  // [width]; no bias with "rms"

 private:
  at::Tensor normalized(const at::Tensor& x, at::ScalarType type) const;
};

}  // namespace cosformer::nn
