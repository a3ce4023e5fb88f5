// Whether autocast is on for a tensor's device, and in which type products of matrices are then computed.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "ops/torch_compat.h"

namespace cosformer::nn {

inline bool is_autocast(const at::Tensor& x) {
  const auto key = x.is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastCPU;
  return x.is_floating_point() && x.scalar_type() != at::kDouble && !c10::impl::tls_is_dispatch_key_excluded(key);
}

inline at::ScalarType product_type(const at::Tensor& x) {
  return is_autocast(x) ? ops::autocast_type(x.device().type()) : x.scalar_type();
}

}  // namespace cosformer::nn
