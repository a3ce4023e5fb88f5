#include "nn/token_order.h"

#include <tuple>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// rows[g, r, t] = x[g, r or 0, index[g, r, t]]
at::Tensor take_rows(const at::Tensor& x, const at::Tensor& index) {
  const std::int64_t time = x.size(-2), dim = x.size(-1), tables = x.numel() / (time * dim);
  const std::int64_t each = index.numel() / (tables * time);  // index rows of a table
  const at::Tensor first = at::arange(tables, index.options()).view({tables, 1}) * time;
  const at::Tensor rows = index.reshape({tables, each * time}) + first;
  return x.reshape({-1, dim}).index_select(0, rows.flatten()).view({index.size(0), index.size(1), time, dim});
}

struct Sort : torch::autograd::Function<Sort> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& token,
                            const at::Tensor& place) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({token, place});
    return take_rows(x, token);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads);
};

struct Restore : torch::autograd::Function<Restore> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& token,
                            const at::Tensor& place) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({token, place});
    return take_rows(x, place);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {take_rows(grads[0], saved[0]), {}, {}};
  }
};

variable_list Sort::backward(AutogradContext* ctx, const variable_list& grads) {
  const variable_list saved = ctx->get_saved_variables();
  return {take_rows(grads[0], saved[1]).sum(1), {}, {}};
}

}  // namespace

TokenOrder::TokenOrder(const at::Tensor& keys) : token_(std::get<1>(keys.sort(-1))) {
  place_ = at::empty_like(token_).scatter_(-1, token_,
                                           at::arange(keys.size(-1), token_.options()).expand_as(token_).contiguous());
}

at::Tensor TokenOrder::sort(const at::Tensor& x) const {
  return Sort::apply(x, token_, place_);
}

at::Tensor TokenOrder::restore(const at::Tensor& x) const {
  return Restore::apply(x, token_, place_);
}

}  // namespace cosformer::nn
