#include "nn/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/autocast.h"

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Over all dimensions but the last, in float32 or better. Two sums, over the tokens of a sequence and over sequences,
// are shared out to more threads than one over everything.
at::Tensor sum_of_rows(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  if (x.dim() < 3) return x.sum(0, false, type);
  return x.flatten(1, -2).sum(1, false, type).sum(0);
}

// All three in one type.
struct WithBias : torch::autograd::Function<WithBias> {
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& weight, const Variable& bias) {
    ctx->save_for_backward({x, weight});
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &dy = grads[0], &x = saved[0], &weight = saved[1];
    const at::Tensor dy_rows = dy.reshape({-1, dy.size(-1)}), x_rows = x.reshape({-1, x.size(-1)});
    return {at::matmul(dy, weight), at::mm(dy_rows.t(), x_rows), sum_of_rows(dy).to(weight.scalar_type())};
  }
};

}  // namespace

at::Tensor linear(const torch::nn::Linear& layer, const at::Tensor& x) {
  if (!layer->bias.defined()) return at::linear(x, layer->weight);
  const at::ScalarType type = product_type(x);
  return WithBias::apply(x.to(type), layer->weight.to(type), layer->bias.to(type));
}

}  // namespace cosformer::nn
