// LayerNorm and RMSNorm over the last dimension, and their gradients:
//   y = u / √(mean(u²) + eps) · weight + bias       with a bias: LayerNorm, u = x − mean(x)
//                                                   without one: RMSNorm, u = x
// Dispatched by device: kernels of ours on GPUs, torch's operators elsewhere.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/options.h"

namespace cosformer::ops {

struct RowNormOptions {
  double eps = 1e-6;

  template <class Visit, class... Options>
  static void each(const Visit& visit, Options&... o) {
    visit(Field{"eps"}, o.eps...);
  }
};

struct RowNormArguments {
  at::Tensor x, weight;
  at::Tensor bias;  // undefined: RMSNorm
  RowNormOptions options;

  template <class Visit, class... Arguments>
  static void each(const Visit& visit, Arguments&... a) {
    visit(Field{"x", kRequired}, a.x...);
    visit(Field{"weight", kRequired}, a.weight...);
    visit(Field{"bias"}, a.bias...);
    RowNormOptions::each(visit, a.options...);
  }
};

struct RowNormResult {
  at::Tensor y;
  at::Tensor mean, inverse;  // what the backward pass of the same device wants to see again, undefined where nothing

  template <class Visit, class... Results>
  static void each(const Visit& visit, Results&... r) {
    visit(Field{"y", kRequired}, r.y...);
    visit(Field{"mean"}, r.mean...);
    visit(Field{"inverse"}, r.inverse...);
  }
};

struct RowNormGradients {
  at::Tensor dx, dweight, dbias;  // in the types of x and weight; dbias is undefined where there is no bias

  template <class Visit, class... Results>
  static void each(const Visit& visit, Results&... r) {
    visit(Field{"dx", kRequired}, r.dx...);
    visit(Field{"dweight", kRequired}, r.dweight...);
    visit(Field{"dbias"}, r.dbias...);
  }
};

// y in `type`.
RowNormResult row_norm_fwd(const RowNormArguments& a, at::ScalarType type);
RowNormGradients row_norm_bwd(const at::Tensor& dy, const RowNormArguments& a, const at::Tensor& mean,
                              const at::Tensor& inverse);

}  // namespace cosformer::ops
