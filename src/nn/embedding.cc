#include "nn/embedding.h"

#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/embedding.h"

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Embed : torch::autograd::Function<Embed> {
  static Variable forward(AutogradContext* ctx, const Variable& table, const Variable& ids,
                          const ops::Optional<Variable>& onto) {
    const at::AutoDispatchBelowADInplaceOrView below;  // the result is no view to autograd
    ctx->save_for_backward({ids});
    ctx->saved_data["rows"] = table.size(0);
    ctx->saved_data["onto"] = onto.has_value();
    return ops::embedding_fwd(table, ids, onto);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Variable& dy = grads[0];
    return {ctx->needs_input_grad(0) ? ops::embedding_bwd(dy, saved[0], ctx->saved_data["rows"].toInt()) : Variable(),
            Variable(), ctx->saved_data["onto"].toBool() ? dy : Variable()};
  }
};

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids) {
  return Embed::apply(table, ids, ops::Optional<Variable>());
}

at::Tensor add_embedded(const at::Tensor& x, const at::Tensor& table, const at::Tensor& ids) {
  std::vector<std::int64_t> shape = ids.sizes().vec();
  shape.push_back(table.size(1));
  // torch knows what becomes of other shapes and mixed types.
  if (x.sizes() != shape || x.scalar_type() != table.scalar_type() || x.device() != table.device()) {
    return x + embed(table, ids);
  }
  return Embed::apply(table, ids, ops::Optional<Variable>(x));
}

}  // namespace cosformer::nn
