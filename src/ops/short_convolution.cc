#include "ops/short_convolution.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/registered.h"

namespace cosformer::ops {
namespace {

// The tokens t for which t + shift exists too, in both.
struct Overlap {
  at::Tensor here, there;
};
Overlap overlap(const at::Tensor& a, const at::Tensor& b, std::int64_t shift) {
  const std::int64_t count = std::max<std::int64_t>(a.size(1) - std::abs(shift), 0);
  return {a.narrow(1, shift < 0 ? a.size(1) - count : 0, count), b.narrow(1, shift > 0 ? b.size(1) - count : 0, count)};
}

// One pass over memory for each tap.
at::Tensor composed_fwd(const at::Tensor& x, const at::Tensor& weight, std::int64_t before) {
  const at::Tensor w = weight.to(x.scalar_type());
  at::Tensor y = x * w[before];
  for (std::int64_t j = 0; j < w.size(0); ++j) {
    if (j == before) continue;
    auto [here, there] = overlap(y, x, j - before);
    here.addcmul_(there, w[j]);
  }
  return y;
}

std::tuple<at::Tensor, at::Tensor> composed_bwd(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                                std::int64_t before) {
  const at::Tensor w = weight.to(x.scalar_type());
  at::Tensor dx = dy * w[before];
  at::Tensor dw = at::empty_like(weight);
  for (std::int64_t j = 0; j < w.size(0); ++j) {
    const auto [dy_here, x_there] = overlap(dy, x, j - before);
    dw[j].copy_((dy_here * x_there).sum(at::IntArrayRef({0, 1}), false, weight.scalar_type()));
    if (j == before) continue;
    auto [dy_part, dx_part] = overlap(dy, dx, j - before);
    dx_part.addcmul_(dy_part, w[j]);
  }
  return {dx, dw};
}

using ForwardSignature = at::Tensor(const at::Tensor&, const at::Tensor&, std::int64_t);
using BackwardSignature = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                             std::int64_t);

}  // namespace

at::Tensor short_convolution_fwd(const at::Tensor& x, const at::Tensor& weight, std::int64_t before) {
  static const auto op = registered<ForwardSignature>("cosformer::_short_convolution_fwd");
  return op.call(x, weight, before);
}

std::tuple<at::Tensor, at::Tensor> short_convolution_bwd(const at::Tensor& dy, const at::Tensor& x,
                                                         const at::Tensor& weight, std::int64_t before) {
  static const auto op = registered<BackwardSignature>("cosformer::_short_convolution_bwd");
  return op.call(dy, x, weight, before);
}

TORCH_LIBRARY_FRAGMENT(cosformer, m) {
  m.def("_short_convolution_fwd(Tensor x, Tensor weight, int before) -> Tensor");
  m.def("_short_convolution_bwd(Tensor dy, Tensor x, Tensor weight, int before) -> (Tensor dx, Tensor dweight)");
}

TORCH_LIBRARY_IMPL(cosformer, CompositeExplicitAutograd, m) {
  m.impl("_short_convolution_fwd", composed_fwd);
  m.impl("_short_convolution_bwd", composed_bwd);
}

}  // namespace cosformer::ops
