#include "nn/norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/autocast.h"
#include "ops/boxing.h"
#include "ops/row_norm.h"
#include "ops/torch_compat.h"

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kOptions = "options";

// LayerNorm with a bias, RMSNorm without one.
struct Normalize : torch::autograd::Function<Normalize> {
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& weight,
                          const ops::Optional<Variable>& bias, const ops::RowNormOptions& options,
                          at::ScalarType type) {
    const Variable b = bias.has_value() ? *bias : Variable();
    const auto [y, mean, inverse] = ops::row_norm_fwd({x, weight, b, options}, type);
    ctx->save_for_backward({x, weight, b, mean, inverse});
    ctx->saved_data[kOptions] = ops::values_of(options);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    ops::RowNormOptions options;
    ops::set_values(options, ctx->saved_data[kOptions]);
    const auto [dx, dweight, dbias] =
        ops::row_norm_bwd(grads[0], {saved[0], saved[1], saved[2], options}, saved[3], saved[4]);
    return {dx, dweight, dbias, Variable(), Variable()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return Normalize::apply(x, weight, ops::Optional<Variable>(), ops::RowNormOptions{eps}, x.scalar_type());
}

Norm::Norm(const std::string& kind, std::int64_t width) {
  weight = register_parameter("weight", at::ones({width}));
  if (kind == "layer") bias = register_parameter("bias", at::zeros({width}));
}

at::Tensor Norm::normalized(const at::Tensor& x, at::ScalarType type) const {
  return Normalize::apply(x, weight, bias.defined() ? ops::Optional<Variable>(bias) : ops::Optional<Variable>(),
                          ops::RowNormOptions(), type);
}

at::Tensor Norm::forward(const at::Tensor& x) {
  return normalized(x, bias.defined() && x.is_cuda() && is_autocast(x) ? at::kFloat : x.scalar_type());
}

at::Tensor Norm::forward_for_products(const at::Tensor& x) {
  return x.is_cuda() && is_autocast(x) ? normalized(x, product_type(x)) : forward(x);
}

}  // namespace cosformer::nn
