// Runs the operator, as users call it, on a case of kernels/verify: the bridge from cases to tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "cosformer/attention.h"
#include "kernels/verify/run_case.h"

namespace cosformer::ops {

at::ScalarType scalar_type_of(kernels::DType dtype);

// Tensors of a case, laid out as the case asks, requiring gradients.
struct CaseTensors {
  at::Tensor q, k, v, dout;
  AttentionOptions options;  // for a case without a state
  StreamOptions stream;      // for one with
  AttentionState state;      // likewise
  at::Tensor d_kv, d_z;      // gradients that arrive through the outgoing state
};

CaseTensors make_tensors(const kernels::verify::AttentionCase& c, const kernels::verify::CaseData& data,
                         at::Device device);

// Forward and backward through autograd.
kernels::verify::CaseResult run_operator(const kernels::verify::AttentionCase& c, const kernels::verify::CaseData& data,
                                         at::Device device);

}  // namespace cosformer::ops
