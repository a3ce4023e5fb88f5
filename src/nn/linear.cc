#include "nn/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/autocast.h"
#include "nn/row_products.h"

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Of [rows, columns], in float32 or better. Sums of some rows each, and then their sum, are shared out to more threads
// than one sum over everything.
at::Tensor sum_of_rows(const at::Tensor& x) {
  constexpr std::int64_t kTogether = 512;
  const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const std::int64_t groups = x.size(0) / kTogether, whole = groups * kTogether;
  if (groups < 2) return x.sum(0, false, type);
  const at::Tensor sum = x.narrow(0, 0, whole).view({groups, kTogether, x.size(1)}).sum(1, false, type).sum(0);
  return whole == x.size(0) ? sum : sum + x.narrow(0, whole, x.size(0) - whole).sum(0, false, type);
}

// All three in one type.
struct WithBias : torch::autograd::Function<WithBias> {
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& weight, const Variable& bias) {
    const at::AutoDispatchBelowADInplaceOrView below;  // the result is no view to autograd
    ctx->save_for_backward({x, weight});
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor dy = grads[0].reshape({-1, weight.size(0)}).contiguous();
    const at::Tensor dx = ctx->needs_input_grad(0) ? at::mm(dy, weight).view(x.sizes()) : at::Tensor();
    return {dx, at::mm(dy.t(), x.reshape({-1, weight.size(1)})), sum_of_rows(dy).to(weight.scalar_type())};
  }
};

}  // namespace

at::Tensor linear(const torch::nn::Linear& layer, const at::Tensor& x) {
  if (!layer->bias.defined() || goes_row_by_row(x, layer->weight)) return product(x, layer->weight, layer->bias);
  if (!is_autocast(x)) return WithBias::apply(x, layer->weight, layer->bias);
  const at::ScalarType type = product_type(x);
  return WithBias::apply(x.to(type), layer->weight.to(type), layer->bias.to(type));
}

}  // namespace cosformer::nn
