#include "nn/embedding.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/embedding.h"

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Embed : torch::autograd::Function<Embed> {
  static Variable forward(AutogradContext* ctx, const Variable& table, const Variable& ids) {
    const at::AutoDispatchBelowADInplaceOrView below;  // the result is no view to autograd
    ctx->save_for_backward({ids});
    ctx->saved_data["rows"] = table.size(0);
    return at::embedding(table, ids);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {ops::embedding_bwd(grads[0], saved[0], ctx->saved_data["rows"].toInt()), Variable()};
  }
};

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids) {
  return Embed::apply(table, ids);
}

}  // namespace cosformer::nn
