// Gradients of the operators, and the operators themselves below the autograd layer.
#include "ops/autograd.h"

#include <algorithm>
#include <iterator>

#include <torch/csrc/autograd/custom_function.h>

#include "ops/device_ops.h"

namespace cosformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr std::size_t kSavedArguments = 11;

// Everything tensor-like that the backward pass reads again, in a fixed order.
variable_list saved_tensors(const AttentionArguments& a) {
  return {a.q,        a.k,       a.v,       a.theta, a.log_decay, a.key_mask, a.cu_seqlens_q, a.cu_seqlens_k,
          a.state_kv, a.state_z, a.position};
}

void save(AutogradContext* ctx, const AttentionArguments& a, const variable_list& more) {
  variable_list tensors = saved_tensors(a);
  // Callers advance their position in place between calls; the backward pass needs it as it was.
  if (a.position.defined()) tensors.back() = a.position.clone();
  tensors.insert(tensors.end(), more.begin(), more.end());
  ctx->save_for_backward(tensors);
  ctx->saved_data["horizon"] = a.horizon;
  ctx->saved_data["causal"] = a.causal;
  ctx->saved_data["feature_map"] = a.feature_map;
  ctx->saved_data["normalizer"] = a.normalizer;
  ctx->saved_data["eps"] = a.eps;
}

AttentionArguments restore(AutogradContext* ctx, const variable_list& saved) {
  AttentionArguments a;
  a.q = saved[0];
  a.k = saved[1];
  a.v = saved[2];
  a.theta = saved[3];
  a.log_decay = saved[4];
  a.key_mask = saved[5];
  a.cu_seqlens_q = saved[6];
  a.cu_seqlens_k = saved[7];
  a.state_kv = saved[8];
  a.state_z = saved[9];
  a.position = saved[10];
  a.horizon = ctx->saved_data["horizon"].toDouble();
  a.causal = ctx->saved_data["causal"].toBool();
  a.feature_map = ctx->saved_data["feature_map"].toInt();
  a.normalizer = ctx->saved_data["normalizer"].toInt();
  a.eps = ctx->saved_data["eps"].toDouble();
  return a;
}

// The backward pass as a function of its own: differentiating it once more is refused, not silently wrong.
struct AttentionBackward : torch::autograd::Function<AttentionBackward> {
  static variable_list forward(AutogradContext*, const Variable& dout, const OptionalTensor& d_state_kv,
                               const OptionalTensor& d_state_z, const Variable& /*q*/, const Variable& /*k*/,
                               const Variable& /*v*/, const OptionalTensor& /*log_decay*/,
                               const OptionalTensor& /*state_kv*/, const OptionalTensor& /*state_z*/,
                               const BackwardInputs& kept, const AttentionArguments& a) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [dq, dk, dv, d_log_decay, d_kv, d_z] =
        call_bwd({dout, tensor(d_state_kv), tensor(d_state_z), kept.out, kept.denominator, kept.sum_kv, kept.sum_z}, a);
    return {dq, dk, dv, d_log_decay, d_kv, d_z};
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK(false,
                "cosformer::attention: double backward is not supported; call backward without create_graph=True");
  }
};

// Differentiable in q, k, v, log_decay and the incoming state; through the output and the outgoing state.
struct Attention : torch::autograd::Function<Attention> {
  static variable_list forward(AutogradContext* ctx, const Variable& /*q*/, const Variable& /*k*/,
                               const Variable& /*v*/, const OptionalTensor& /*log_decay*/,
                               const OptionalTensor& /*state_kv*/, const OptionalTensor& /*state_z*/,
                               const AttentionArguments& a, bool for_backward) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [out, denominator, kv, z] = call_fwd(a, for_backward);
    if (a.has_state()) {
      if (for_backward) save(ctx, a, {out, denominator});
      return {out, kv, z};
    }
    if (for_backward) save(ctx, a, {out, denominator, kv, z});
    return {out};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const AttentionArguments a = restore(ctx, saved);
    BackwardInputs kept{{}, {}, {}, saved[kSavedArguments], saved[kSavedArguments + 1], {}, {}};
    if (!a.has_state()) {
      kept.sum_kv = saved[kSavedArguments + 2];
      kept.sum_z = saved[kSavedArguments + 3];
    }
    const Variable d_kv_out = a.has_state() ? grads[1] : Variable(), d_z_out = a.has_state() ? grads[2] : Variable();
    const variable_list g =
        AttentionBackward::apply(grads[0], optional(d_kv_out), optional(d_z_out), a.q, a.k, a.v, optional(a.log_decay),
                                 optional(a.state_kv), optional(a.state_z), kept, a);
    const Variable none;
    return {
        g[0], g[1], g[2], a.log_decay.defined() ? g[3] : none, a.has_state() ? g[4] : none, a.has_state() ? g[5] : none,
        none, none};
  }
};

// Whether anything will ask for gradients; else nothing is kept for them. The function is applied in any case: it
// refuses what it cannot do, forward-mode derivatives for one.
bool wants_gradients(const AttentionArguments& a) {
  if (!at::GradMode::is_enabled()) return false;
  const at::Tensor tensors[] = {a.q, a.k, a.v, a.log_decay, a.state_kv, a.state_z};
  return std::any_of(std::begin(tensors), std::end(tensors),
                     [](const at::Tensor& x) { return x.defined() && x.requires_grad(); });
}

variable_list apply(const AttentionArguments& a) {
  return Attention::apply(a.q, a.k, a.v, optional(a.log_decay), optional(a.state_kv), optional(a.state_z), a,
                          wants_gradients(a));
}

}  // namespace

at::Tensor attention_on_device(const AttentionArguments& a) {
  return std::get<0>(call_fwd(a, /*for_backward=*/false));
}

StreamResult stream_on_device(const AttentionArguments& a) {
  auto [out, denominator, kv, z] = call_fwd(a, /*for_backward=*/false);
  return {out, kv, z};
}

at::Tensor attention_autograd(const AttentionArguments& a) {
  return apply(a)[0];
}

StreamResult stream_autograd(const AttentionArguments& a) {
  const variable_list results = apply(a);
  return {results[0], results[1], results[2]};
}

}  // namespace cosformer::ops
