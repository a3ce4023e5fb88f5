// Rows of an embedding's table by their numbers, and the table's gradient: row r is the sum of dy over the tokens whose
// id is r. Both give the same bits every time, except in float64 on a GPU, where torch's serve.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/torch_compat.h"

namespace cosformer::ops {

// table: [rows, width], ids: [...] of integers, onto: [..., width] in the table's type or absent; onto + table[ids]. An
// id outside the table is an error on the CPU and a row of NaN on a GPU, which cannot stop a training step in its
// middle.
at::Tensor embedding_fwd(const at::Tensor& table, const at::Tensor& ids, const Optional<at::Tensor>& onto);

// dy: [..., width], ids: [...] of integers; [rows, width] in dy's type.
at::Tensor embedding_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows);

// As torch has them, for what the kernels of a device do not take.
at::Tensor torch_embedding_fwd(const at::Tensor& table, const at::Tensor& ids, const Optional<at::Tensor>& onto);
at::Tensor torch_embedding_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows);

}  // namespace cosformer::ops
