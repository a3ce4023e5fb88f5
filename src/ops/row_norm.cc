#include "ops/row_norm.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/registered.h"

namespace cosformer::ops {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using OptionalTensor = Optional<at::Tensor>;

bool is_given(const OptionalTensor& x) {
  return x.has_value() && x->defined();
}

// Squares leave the range of half precision.
at::Tensor widened(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

Three composed_fwd(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, double eps,
                   at::ScalarType type) {
  if (is_given(bias)) {
    auto [y, mean, inverse] = at::native_layer_norm(x, weight.sizes(), weight, bias, eps);
    return {y.to(type), mean, inverse};
  }
  const at::Tensor wide = widened(x);
  const at::Tensor inverse = (wide.square().mean(-1, true) + eps).rsqrt();
  return {(wide * inverse * weight).to(type), at::Tensor(), inverse};
}

Three composed_bwd(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                   const OptionalTensor& mean, const OptionalTensor& inverse, double /*eps*/) {
  if (is_given(bias)) {
    return at::native_layer_norm_backward(dy.to(x.scalar_type()), x, weight.sizes(), *mean, *inverse, weight, bias,
                                          {true, true, true});
  }
  const at::Tensor slope = dy.to(inverse->scalar_type()), unit = widened(x) * *inverse, g = slope * weight;
  const at::Tensor dx = *inverse * (g - unit * (g * unit).mean(-1, true));
  const at::Tensor dweight = (slope * unit).reshape({-1, weight.size(0)}).sum(0);
  return {dx.to(x.scalar_type()), dweight.to(weight.scalar_type()), at::Tensor()};
}

using ForwardSignature = Three(const at::Tensor&, const at::Tensor&, const OptionalTensor&, double, at::ScalarType);
using BackwardSignature = Three(const at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                                const OptionalTensor&, const OptionalTensor&, double);

}  // namespace

Three row_norm_fwd(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias, double eps,
                   at::ScalarType type) {
  static const auto op = registered<ForwardSignature>("cosformer::_row_norm_fwd");
  return op.call(x, weight, bias, eps, type);
}

Three row_norm_bwd(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                   const OptionalTensor& mean, const OptionalTensor& inverse, double eps) {
  static const auto op = registered<BackwardSignature>("cosformer::_row_norm_bwd");
  return op.call(dy, x, weight, bias, mean, inverse, eps);
}

TORCH_LIBRARY_FRAGMENT(cosformer, m) {
  m.def(
      "_row_norm_fwd(Tensor x, Tensor weight, Tensor? bias, float eps, ScalarType type) -> "
      "(Tensor y, Tensor mean, Tensor inverse)");
  m.def(
      "_row_norm_bwd(Tensor dy, Tensor x, Tensor weight, Tensor? bias, Tensor? mean, Tensor? inverse, float eps) -> "
      "(Tensor dx, Tensor dweight, Tensor dbias)");
}

TORCH_LIBRARY_IMPL(cosformer, CompositeExplicitAutograd, m) {
  m.impl("_row_norm_fwd", composed_fwd);
  m.impl("_row_norm_bwd", composed_bwd);
}

}  // namespace cosformer::ops
