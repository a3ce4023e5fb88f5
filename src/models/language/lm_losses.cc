#include "models/language/lm_losses.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/full_precision.h"

namespace cosformer::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr std::int64_t kLogitsAtOnce = std::int64_t{1} << 24;  // 64 MB in float32

std::int64_t rows_at_once(std::int64_t vocabulary) {
  return std::max<std::int64_t>(kLogitsAtOnce / vocabulary, 1);
}

struct TokenLosses : torch::autograd::Function<TokenLosses> {
  static Variable forward(AutogradContext* ctx, const Variable& hidden, const Variable& weight,
                          const Variable& targets) {
    const std::int64_t rows = hidden.size(0), step = rows_at_once(weight.size(0));
    const auto type = hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor losses = at::empty({rows}, hidden.options().dtype(type)), normalizers = at::empty_like(losses);
    at::ScalarType product_type = hidden.scalar_type();
    for (std::int64_t begin = 0; begin < rows; begin += step) {
      const std::int64_t count = std::min(step, rows - begin);
      // Autocast may make the product one of half precision; the backward pass does as it does.
      at::Tensor logits = at::matmul(hidden.narrow(0, begin, count), weight.t());
      product_type = logits.scalar_type();
      const nn::FullPrecision full_precision;
      logits = nn::at_least_float(logits);
      const at::Tensor target = targets.narrow(0, begin, count);
      const at::Tensor normalizer = logits.logsumexp(-1);
      const at::Tensor chosen = logits.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
      normalizers.narrow(0, begin, count).copy_(normalizer);
      losses.narrow(0, begin, count).copy_((normalizer - chosen).masked_fill(target == kNoTarget, 0));
    }
    ctx->save_for_backward({hidden, weight, targets, normalizers});
    ctx->saved_data["type"] = static_cast<std::int64_t>(product_type);
    return losses;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["type"].toInt());
    const nn::FullPrecision no_autocast;
    const at::Tensor hidden = saved[0].to(type), weight = saved[1].to(type), &targets = saved[2],
                     &normalizers = saved[3];
    const std::int64_t rows = hidden.size(0), step = rows_at_once(weight.size(0));
    at::Tensor d_hidden = at::empty_like(saved[0]), d_weight = at::zeros_like(saved[1]);
    for (std::int64_t begin = 0; begin < rows; begin += step) {
      const std::int64_t count = std::min(step, rows - begin);
      const at::Tensor h = hidden.narrow(0, begin, count), target = targets.narrow(0, begin, count);
      const at::Tensor d_loss = grads[0].narrow(0, begin, count).masked_fill(target == kNoTarget, 0);
      at::Tensor d_logits =
          (nn::at_least_float(at::matmul(h, weight.t())) - normalizers.narrow(0, begin, count).unsqueeze(1)).exp_();
      const at::Tensor chosen = target.clamp_min(0).unsqueeze(1);
      d_logits.scatter_add_(1, chosen, at::full_like(chosen, -1, d_logits.options()));
      d_logits.mul_(d_loss.unsqueeze(1));
      d_logits = d_logits.to(type);
      d_hidden.narrow(0, begin, count).copy_(at::matmul(d_logits, weight));
      d_weight.add_(at::matmul(d_logits.t(), h));
    }
    return {d_hidden, d_weight, Variable()};
  }
};

}  // namespace

at::Tensor token_losses(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  return TokenLosses::apply(hidden, weight, targets.to(at::kLong));
}

}  // namespace cosformer::models
