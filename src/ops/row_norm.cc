#include "ops/row_norm.h"

#include <string>

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <torch/library.h>

#include "ops/boxing.h"
#include "ops/registered.h"
#include "ops/schema.h"

namespace cosformer::ops {
namespace {

// Squares leave the range of half precision.
at::Tensor widened(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

RowNormResult composed_fwd(const RowNormArguments& a, at::ScalarType type) {
  if (a.bias.defined()) {
    auto [y, mean, inverse] = at::native_layer_norm(a.x, a.weight.sizes(), a.weight, a.bias, a.options.eps);
    return {y.to(type), mean, inverse};
  }
  const at::Tensor wide = widened(a.x);
  const at::Tensor inverse = (wide.square().mean(-1, true) + a.options.eps).rsqrt();
  return {(wide * inverse * a.weight).to(type), at::Tensor(), inverse};
}

RowNormGradients composed_bwd(const at::Tensor& dy, const RowNormArguments& a, const at::Tensor& mean,
                              const at::Tensor& inverse) {
  const auto& [x, weight, bias, options] = a;
  if (bias.defined()) {
    const auto [dx, dweight, dbias] = at::native_layer_norm_backward(dy.to(x.scalar_type()), x, weight.sizes(), mean,
                                                                     inverse, weight, bias, {true, true, true});
    return {dx, dweight, dbias};
  }
  const at::Tensor slope = dy.to(inverse.scalar_type()), unit = widened(x) * inverse, g = slope * weight;
  const at::Tensor dx = inverse * (g - unit * (g * unit).mean(-1, true));
  const at::Tensor dweight = (slope * unit).reshape({-1, weight.size(0)}).sum(0);
  return {dx.to(x.scalar_type()), dweight.to(weight.scalar_type()), at::Tensor()};
}

}  // namespace

RowNormResult row_norm_fwd(const RowNormArguments& a, at::ScalarType type) {
  static const c10::OperatorHandle op = operator_named("cosformer::_row_norm_fwd");
  return call<RowNormResult>(op, a, type);
}

RowNormGradients row_norm_bwd(const at::Tensor& dy, const RowNormArguments& a, const at::Tensor& mean,
                              const at::Tensor& inverse) {
  static const c10::OperatorHandle op = operator_named("cosformer::_row_norm_bwd");
  return call<RowNormGradients>(op, dy, a, mean, inverse);
}

TORCH_LIBRARY_FRAGMENT(cosformer, m) {
  const std::string arguments = schema_of(RowNormArguments());
  m.def(fmt::format("_row_norm_fwd({}, ScalarType type) -> ({})", arguments, schema_of(RowNormResult())).c_str());
  m.def(fmt::format("_row_norm_bwd(Tensor dy, {}, Tensor? mean, Tensor? inverse) -> ({})", arguments,
                    schema_of(RowNormGradients()))
            .c_str());
}

TORCH_LIBRARY_IMPL(cosformer, CompositeExplicitAutograd, m) {
  m.impl("_row_norm_fwd", boxed<composed_fwd>());
  m.impl("_row_norm_bwd", boxed<composed_bwd>());
}

}  // namespace cosformer::ops
