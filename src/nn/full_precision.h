// A scope without autocast, for steps whose result low precision would spoil: exponents, inverses, long sums.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace cosformer::nn {

class FullPrecision {
 public:
  FullPrecision() : guard_(c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

// In float32, or float64 where it already is.
inline at::Tensor at_least_float(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

}  // namespace cosformer::nn
