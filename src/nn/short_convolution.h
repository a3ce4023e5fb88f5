// A depthwise convolution over a few neighbouring tokens: what lets linear attention see order at close range.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "nn/stream.h"

namespace cosformer::nn {

class ShortConvolution : public torch::nn::Module {
 public:
  // Causal: token t sees t − width + 1 … t. Otherwise centred: t − width/2 … t + (width − 1)/2.
  ShortConvolution(std::int64_t channels, std::int64_t width, bool causal);

  // x [B, T, C] → [B, T, C]; tokens beyond the ends count as zero.
  at::Tensor forward(const at::Tensor& x);

  // The same of packed sequences: tokens of another one count as zero too.
  at::Tensor forward_packed(const at::Tensor& x, const Packing& packing);

  // Causal: the next tokens; `before` [B, width − 1, C] holds the last inputs, zeros at the beginning, and is advanced.
  at::Tensor forward_stream(const at::Tensor& x, at::Tensor& before);

  at::Tensor weight;  // [width, C]; row j multiplies the token at t − (tokens before) + j

 private:
  std::int64_t before_;
};

}  // namespace cosformer::nn
