// x·wᵀ as layers compute it, and a scope in which it is computed row by row: with the same bits for a row, whatever
// rows are beside it.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// On this thread and for its lifetime. It is for decoding, where rows are few: without gradients, in float32 on the
// CPU; elsewhere it changes nothing.
class RowByRow {
 public:
  explicit RowByRow(bool active = true);
  ~RowByRow();
  RowByRow(const RowByRow&) = delete;
  RowByRow& operator=(const RowByRow&) = delete;

  static bool is_active();

 private:
  bool before_;
};

// x [..., k], weight [n, k], bias [n] or undefined → [..., n].
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// Whether product() would go row by row.
bool goes_row_by_row(const at::Tensor& x, const at::Tensor& weight);

}  // namespace cosformer::nn
