// The gradient of an embedding's table: row r is the sum of dy over the tokens whose id is r. The same bits every time
// on the CPU, and on GPUs for tables of up to 4,096 rows; larger ones go through torch, which there adds in a changing
// order.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cosformer::ops {

// dy: [..., width], ids: [...] of integers; [rows, width] in dy's type.
at::Tensor embedding_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows);

}  // namespace cosformer::ops
