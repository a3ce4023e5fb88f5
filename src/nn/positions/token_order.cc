#include "nn/positions/token_order.h"

#include <tuple>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// rows[g, t] = x[g, index[g, t]]
at::Tensor take_rows(const at::Tensor& x, const at::Tensor& index) {
  const std::int64_t groups = x.size(0), time = x.size(1), dim = x.size(2);
  const at::Tensor rows = index + at::arange(groups, index.options()).unsqueeze(1) * time;
  return x.reshape({groups * time, dim}).index_select(0, rows.flatten()).view({groups, time, dim});
}

// By an order, whose gradient goes by the inverse.
struct Reorder : torch::autograd::Function<Reorder> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& order,
                            const at::Tensor& inverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({inverse});
    return take_rows(x, order);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {take_rows(grads[0], ctx->get_saved_variables()[0]), {}, {}};
  }
};

}  // namespace

TokenOrder::TokenOrder(const at::Tensor& keys) : token_(std::get<1>(keys.sort(-1))) {
  const at::Tensor places = at::arange(keys.size(1), token_.options()).expand_as(token_).contiguous();
  place_ = at::empty_like(token_).scatter_(1, token_, places);
}

at::Tensor TokenOrder::sort(const at::Tensor& x) const {
  return Reorder::apply(x, token_, place_);
}

at::Tensor TokenOrder::restore(const at::Tensor& x) const {
  return Reorder::apply(x, place_, token_);
}

}  // namespace cosformer::nn
