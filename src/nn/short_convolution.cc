#include "nn/short_convolution.h"

#include <cmath>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/short_convolution.h"

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// A function of its own because autograd would keep and add as many copies as there are taps.
struct Convolve : torch::autograd::Function<Convolve> {
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& weight, std::int64_t before) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["before"] = before;
    return ops::short_convolution_fwd(x, weight, before);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto [dx, dweight] =
        ops::short_convolution_bwd(grads[0], saved[0], saved[1], ctx->saved_data["before"].toInt());
    return {dx, dweight, Variable()};
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
