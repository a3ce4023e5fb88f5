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

}  // namespace cosformer::nn
