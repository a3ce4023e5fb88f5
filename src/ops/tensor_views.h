// How kernels see a tensor: its dtype, its memory and its strides. The same for every device.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/attention.h"

namespace cosformer::ops {

inline kernels::DType dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return kernels::DType::kFloat64;
    case at::kBFloat16: return kernels::DType::kBFloat16;
    case at::kHalf: return kernels::DType::kFloat16;
    default: return kernels::DType::kFloat32;
  }
}

inline kernels::ConstView const_view(const at::Tensor& x) {
  return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)};
}

inline kernels::View view(const at::Tensor& x) {
  return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)};
}

}  // namespace cosformer::ops
