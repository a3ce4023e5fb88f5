// LayerNorm and RMSNorm behind one name.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace cosformer::nn {

// x / √(mean(x²) + eps) · weight over the last dimension.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps = 1e-6);

class Norm : public torch::nn::Module {
 public:
  Norm(const std::string& kind, std::int64_t width);  // "layer" or "rms"
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight, bias;  // [width]; no bias with "rms"
};

}  // namespace cosformer::nn
