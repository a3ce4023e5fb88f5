// Rows of a table by their numbers, or those added to something, with the gradient of ops/embedding.h: the same bits
// every time. It has no gradient of its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// table: [rows, width], ids: [...] of integers; [..., width].
at::Tensor embed(const at::Tensor& table, const at::Tensor& ids);

// x + embed(table, ids), by one kernel on a GPU where x is [..., width] in the table's type.
at::Tensor add_embedded(const at::Tensor& x, const at::Tensor& table, const at::Tensor& ids);

}  // namespace cosformer::nn
