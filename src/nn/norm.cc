#include "nn/norm.h"

#include <ATen/ATen.h>

namespace cosformer::nn {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);  // squares leave the range of half precision
  return (wide * (wide.square().mean(-1, true) + eps).rsqrt() * weight).to(x.scalar_type());
}

Norm::Norm(const std::string& kind, std::int64_t width) {
  weight = register_parameter("weight", at::ones({width}));
  if (kind == "layer") bias = register_parameter("bias", at::zeros({width}));
}

at::Tensor Norm::forward(const at::Tensor& x) {
  return bias.defined() ? at::layer_norm(x, weight.sizes(), weight, bias, 1e-6) : rms_norm(x, weight);
}

}  // namespace cosformer::nn
