// The definition of the method as plain loops: slow, obvious, and what every fast path is compared with.
#pragma once

#include "kernels/attention.h"

namespace cosformer::kernels::reference {

// w_ij by the definition, O(N²) time, one size wider than the inputs: double, or long double for float64.
const AttentionKernels& quadratic_kernels();

// The same never wider than double: on float64 copies of narrower inputs this is the oracle.
const AttentionKernels& double_quadratic_kernels();

// The yardsticks: the method as one would write it down without care for rounding. A fast path may be at most twice as
// far from the oracle as the worse of these two is.
// - The quadratic form as a tensor library would run it in the input's dtype: features [φ cos, φ sin], weights, sums
//   and gradients each rounded to that dtype when stored.
// - The recurrent form in the accumulation type, one token after the other.
const AttentionKernels& naive_quadratic_kernels();
const AttentionKernels& naive_recurrent_kernels();

// The linear form's sums with every term made positive (values, states and output gradients are expected positive
// already, denominators are read): how large the numbers were that a result came from. No arithmetic is asked to be
// closer than three roundings of these (docs/decisions/error-bounds.md).
const AttentionKernels& magnitude_kernels();

// The same in linear time, for long sequences (not for the decay's gradient, whose terms it does not see one by one).
const AttentionKernels& recurrent_magnitude_kernels();

// One token at a time on the state: O(N) time, and a state that does not grow.
const AttentionKernels& recurrent_kernels();

}  // namespace cosformer::kernels::reference
