// How a model knows where a token stands.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// [length, width]: sines and cosines of geometrically spaced frequencies, as in "Attention Is All You Need".
at::Tensor sinusoidal_table(std::int64_t length, std::int64_t width);

// Cosines and sines of rotary positions: [2, length, dim / 2]. `dim` is even.
at::Tensor rotary_table(std::int64_t length, std::int64_t dim);

// x [B, T, H, D] with each pair (x_i, x_{i + D/2}) of a token at t turned by its angle in the table.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& table);

// The same for tokens at `positions` [B, T] int64.
at::Tensor rotate_at(const at::Tensor& x, const at::Tensor& table, const at::Tensor& positions);

}  // namespace cosformer::nn
