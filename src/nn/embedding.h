// Rows of a table by their numbers, with the gradient of ops/embedding.h: the same bits every time on the CPU, and on
// GPUs for tables that are not too large. It has no gradient of its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// table: [rows, width], ids: [...] of integers; [..., width].
at::Tensor embed(const at::Tensor& table, const at::Tensor& ids);

}  // namespace cosformer::nn
