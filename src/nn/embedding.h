// Rows of a table by their numbers, with a gradient that is the same bits every time (ops/embedding.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// table: [rows, width], ids: [...] of integers; [..., width].
at::Tensor embed(const at::Tensor& table, const at::Tensor& ids);

}  // namespace cosformer::nn
