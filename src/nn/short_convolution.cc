#include "nn/short_convolution.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The tokens t for which t + shift exists too, in both.
struct Overlap {
  at::Tensor here, there;
};
Overlap overlap(const at::Tensor& a, const at::Tensor& b, std::int64_t shift) {
  const std::int64_t count = std::max<std::int64_t>(a.size(1) - std::abs(shift), 0);
  return {a.narrow(1, shift < 0 ? a.size(1) - count : 0, count), b.narrow(1, shift > 0 ? b.size(1) - count : 0, count)};
}

// y[t] = Σ_j weight[j] x[t + j − before], one pass over memory for each j; a function of its own because autograd
// would keep and add as many copies.
struct Convolve : torch::autograd::Function<Convolve> {
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& weight, std::int64_t before) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["before"] = before;
    const at::Tensor w = weight.to(x.scalar_type());
    at::Tensor y = x * w[before];
    for (std::int64_t j = 0; j < w.size(0); ++j) {
      if (j == before) continue;
      auto [here, there] = overlap(y, x, j - before);
      here.addcmul_(there, w[j]);
    }
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &dy = grads[0];
    const std::int64_t before = ctx->saved_data["before"].toInt();
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
    return {dx, dw, Variable()};
  }
};

}  // namespace

ShortConvolution::ShortConvolution(std::int64_t channels, std::int64_t width, bool causal)
    : before_(causal ? width - 1 : width / 2) {
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  weight = register_parameter("weight", at::empty({width, channels}).uniform_(-bound, bound));
}

at::Tensor ShortConvolution::forward(const at::Tensor& x) {
  return Convolve::apply(x, weight, before_);
}

at::Tensor ShortConvolution::forward_packed(const at::Tensor& x, const Packing& packing) {
  // Apart by as many zeros as the convolution is wide, they cannot see each other.
  const std::int64_t tokens = x.size(0) * x.size(1), gap = weight.size(0) - 1;
  const at::Tensor places = at::arange(tokens, packing.document.options()) + packing.document.flatten() * gap;
  const std::int64_t sequences = packing.cu_seqlens.size(0) - 1;
  const at::Tensor spread = at::zeros({1, tokens + sequences * gap, x.size(2)}, x.options())
                                .index_copy(1, places, x.reshape({1, tokens, x.size(2)}));
  return forward(spread).index_select(1, places).view_as(x);
}

at::Tensor ShortConvolution::forward_stream(const at::Tensor& x, at::Tensor& before) {
  const std::int64_t kept = weight.size(0) - 1, time = x.size(1);
  const at::Tensor all = at::cat({before.to(x.scalar_type()), x}, 1);
  before = all.narrow(1, time, kept).clone();  // not a view, which would keep the whole stretch
  return forward(all).narrow(1, kept, time);
}

}  // namespace cosformer::nn
