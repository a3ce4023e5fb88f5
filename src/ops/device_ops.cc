#include "ops/device_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "ops/registered.h"

namespace cosformer::ops {
namespace {

using ForwardSignature = ForwardResult(COSFORMER_DEVICE_ARGUMENTS, bool for_backward);
using BackwardSignature = BackwardResult(const at::Tensor& dout, const OptionalTensor& d_state_kv,
                                         const OptionalTensor& d_state_z, const at::Tensor& out,
                                         const at::Tensor& denominator, const OptionalTensor& sum_kv,
                                         const OptionalTensor& sum_z, COSFORMER_DEVICE_ARGUMENTS);

}  // namespace

ForwardResult call_fwd(const AttentionArguments& a, bool for_backward) {
  static const auto op = registered<ForwardSignature>("cosformer::_attention_fwd");
  return op.call(a.q, a.k, a.v, optional(a.theta), optional(a.log_decay), optional(a.key_mask),
                 optional(a.cu_seqlens_q), optional(a.cu_seqlens_k), optional(a.state_kv), optional(a.state_z),
                 optional(a.position), a.horizon, a.causal, a.feature_map, a.normalizer, a.eps, for_backward);
}

BackwardResult call_bwd(const BackwardInputs& inputs, const AttentionArguments& a) {
  static const auto op = registered<BackwardSignature>("cosformer::_attention_bwd");
  return op.call(inputs.dout, optional(inputs.d_state_kv), optional(inputs.d_state_z), inputs.out, inputs.denominator,
                 optional(inputs.sum_kv), optional(inputs.sum_z), a.q, a.k, a.v, optional(a.theta),
                 optional(a.log_decay), optional(a.key_mask), optional(a.cu_seqlens_q), optional(a.cu_seqlens_k),
                 optional(a.state_kv), optional(a.state_z), optional(a.position), a.horizon, a.causal, a.feature_map,
                 a.normalizer, a.eps);
}

AttentionArguments collect(COSFORMER_DEVICE_ARGUMENTS) {
  AttentionArguments a;
  a.q = q;
  a.k = k;
  a.v = v;
  a.theta = tensor(theta);
  a.log_decay = tensor(log_decay);
  a.key_mask = tensor(key_mask);
  a.cu_seqlens_q = tensor(cu_seqlens_q);
  a.cu_seqlens_k = tensor(cu_seqlens_k);
  a.state_kv = tensor(state_kv);
  a.state_z = tensor(state_z);
  a.position = tensor(position);
  a.horizon = horizon;
  a.causal = causal;
  a.feature_map = feature_map;
  a.normalizer = normalizer;
  a.eps = eps;
  return a;
}

at::Tensor empty_denominators(const AttentionArguments& a) {
  const auto options = a.q.options().dtype(accumulation_type(a.q.scalar_type()));
  if (!a.normalized()) return at::empty({0}, options);
  return at::empty({a.q.size(0), a.q.size(2), a.q.size(1)}, options).transpose(1, 2);
}

}  // namespace cosformer::ops
