// How far softmax attention is off, and how far it may be, as for the operator (docs/decisions/error-bounds.md): twice
// the error of the same formula written naively in the same dtype, and at least three roundings of the largest value.
//
// Naively: sums from left to right in float32, and what passes through memory between two steps (scores, weights, the
// result) rounded to the dtype, as torch's operators have it one after the other. What is exact is computed in long
// double. A bound from the rounding of the result alone forgets that of the scores, which the exponential magnifies: by
// that, float32 of 128 tokens was off by 1.6 times what it might.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/dtype.h"

namespace cosformer::cli {

struct SoftmaxError {
  double error = 0, bound = 0;
};

// Of one head: q, k, v and out [T, D], on the CPU in float64 (the numbers of `dtype`). Of some rows, where looking at
// all of them would take long.
SoftmaxError softmax_error(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                           bool causal, kernels::DType dtype);

}  // namespace cosformer::cli
