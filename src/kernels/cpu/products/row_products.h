// Products of a few rows with a matrix, as decoding needs them: each number of the result is added up in an order that
// depends on nothing but the rows' length. A text therefore gets the same bits alone and in any batch, which the
// products of BLAS, whose blocking follows from the number of rows, do not give.
#pragma once

#include <cstdint>

namespace cosformer::kernels::cpu {

struct RowProducts {
  const float* x;     // [rows, k]
  const float* w;     // [columns, k]
  const float* bias;  // [columns], or null
  float* out;         // [rows, columns]
  std::int64_t rows, columns, k;
};

// Columns [begin, end) of the result, with the fastest instruction set that chosen_kernels() allows.
void multiply_rows(const RowProducts& products, std::int64_t begin, std::int64_t end);

using MultiplyRows = void (*)(const RowProducts&, std::int64_t begin, std::int64_t end);
extern const MultiplyRows kMultiplyRowsBaseline, kMultiplyRowsAvx2, kMultiplyRowsAvx512, kMultiplyRowsPortable;

}  // namespace cosformer::kernels::cpu
