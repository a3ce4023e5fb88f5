// The schemas, declared once, and the public operators under each dispatch key. Devices register themselves.
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "cosformer/attention.h"
#include "ops/autograd.h"
#include "ops/device_ops.h"
#include "ops/registered.h"

namespace cosformer::ops {
namespace {

#define COSFORMER_ATTENTION_PARAMETERS                                                                             \
  const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, bool causal, Optional<double> horizon,            \
      const OptionalTensor &theta, const OptionalTensor &log_decay, c10::string_view feature_map, bool reweight,   \
      c10::string_view normalizer, double eps, const OptionalTensor &key_mask, const OptionalTensor &cu_seqlens_q, \
      const OptionalTensor &cu_seqlens_k

#define COSFORMER_STREAM_PARAMETERS                                                                              \
  const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, const at::Tensor &state_kv,                     \
      const at::Tensor &state_z, const at::Tensor &position, double horizon, const OptionalTensor &theta,        \
      const OptionalTensor &log_decay, c10::string_view feature_map, bool reweight, c10::string_view normalizer, \
      double eps

AttentionArguments check_attention(COSFORMER_ATTENTION_PARAMETERS) {
  AttentionRequest r;
  r.q = q;
  r.k = k;
  r.v = v;
  r.causal = causal;
  r.horizon = horizon;
  r.theta = tensor(theta);
  r.log_decay = tensor(log_decay);
  r.feature_map = std::string(feature_map);
  r.reweight = reweight;
  r.normalizer = std::string(normalizer);
  r.eps = eps;
  r.key_mask = tensor(key_mask);
  r.cu_seqlens_q = tensor(cu_seqlens_q);
  r.cu_seqlens_k = tensor(cu_seqlens_k);
  return check_arguments(r);
}

AttentionArguments check_stream(COSFORMER_STREAM_PARAMETERS) {
  AttentionRequest r;
  r.op = "cosformer::attention_with_state";
  r.carries_state = true;
  r.q = q;
  r.k = k;
  r.v = v;
  r.causal = true;
  r.horizon = horizon;
  r.theta = tensor(theta);
  r.log_decay = tensor(log_decay);
  r.feature_map = std::string(feature_map);
  r.reweight = reweight;
  r.normalizer = std::string(normalizer);
  r.eps = eps;
  r.state_kv = state_kv;
  r.state_z = state_z;
  r.position = position;
  return check_arguments(r);
}

#define COSFORMER_ATTENTION_NAMES                                                                             \
  q, k, v, causal, horizon, theta, log_decay, feature_map, reweight, normalizer, eps, key_mask, cu_seqlens_q, \
      cu_seqlens_k
#define COSFORMER_STREAM_NAMES \
  q, k, v, state_kv, state_z, position, horizon, theta, log_decay, feature_map, reweight, normalizer, eps

at::Tensor attention_with_gradients(COSFORMER_ATTENTION_PARAMETERS) {
  return attention_autograd(check_attention(COSFORMER_ATTENTION_NAMES));
}

StreamResult stream_with_gradients(COSFORMER_STREAM_PARAMETERS) {
  return stream_autograd(check_stream(COSFORMER_STREAM_NAMES));
}

// Below autograd: inference mode, and libraries built without it.
at::Tensor attention_below_autograd(COSFORMER_ATTENTION_PARAMETERS) {
  return attention_on_device(check_attention(COSFORMER_ATTENTION_NAMES));
}

StreamResult stream_below_autograd(COSFORMER_STREAM_PARAMETERS) {
  return stream_on_device(check_stream(COSFORMER_STREAM_NAMES));
}

// Autocast runs q, k and v in its low precision. Angles, decays and states are float32 in any case.
template <c10::DispatchKey kKey, c10::DeviceType kDevice>
at::Tensor attention_autocast(COSFORMER_ATTENTION_PARAMETERS) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const auto to = autocast_type(kDevice);
  const auto cast = [to](const at::Tensor& x) { return at::autocast::cached_cast(to, x, kDevice); };
  static const auto op = registered<at::Tensor(COSFORMER_ATTENTION_PARAMETERS)>("cosformer::attention");
  return op.call(cast(q), cast(k), cast(v), causal, horizon, theta, log_decay, feature_map, reweight, normalizer, eps,
                 key_mask, cu_seqlens_q, cu_seqlens_k);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
StreamResult stream_autocast(COSFORMER_STREAM_PARAMETERS) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const auto to = autocast_type(kDevice);
  const auto cast = [to](const at::Tensor& x) { return at::autocast::cached_cast(to, x, kDevice); };
  static const auto op = registered<StreamResult(COSFORMER_STREAM_PARAMETERS)>("cosformer::attention_with_state");
  return op.call(cast(q), cast(k), cast(v), state_kv, state_z, position, horizon, theta, log_decay, feature_map,
                 reweight, normalizer, eps);
}

ForwardResult meta_fwd(COSFORMER_DEVICE_ARGUMENTS, bool /*for_backward*/) {
  const AttentionArguments a = collect(q, k, v, theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k, state_kv,
                                       state_z, position, horizon, causal, feature_map, normalizer, eps);
  const auto accumulation = q.options().dtype(accumulation_type(q.scalar_type()));
  return {at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, v.options()), empty_denominators(a),
          a.has_state() ? at::empty(a.state_kv.sizes(), accumulation) : at::empty({0}, accumulation),
          a.has_state() ? at::empty(a.state_z.sizes(), accumulation) : at::empty({0}, accumulation)};
}

BackwardResult meta_bwd(const at::Tensor&, const OptionalTensor&, const OptionalTensor&, const at::Tensor&,
                        const at::Tensor& denominator, const OptionalTensor&, const OptionalTensor&,
                        COSFORMER_DEVICE_ARGUMENTS) {
  const AttentionArguments a = collect(q, k, v, theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k, state_kv,
                                       state_z, position, horizon, causal, feature_map, normalizer, eps);
  const at::Tensor none = at::empty({0}, denominator.options());
  return {at::empty_like(q, at::MemoryFormat::Contiguous),   at::empty_like(k, at::MemoryFormat::Contiguous),
          at::empty_like(v, at::MemoryFormat::Contiguous),   a.log_decay.defined() ? at::empty_like(a.log_decay) : none,
          a.has_state() ? at::empty_like(a.state_kv) : none, a.has_state() ? at::empty_like(a.state_z) : none};
}

// What attention_with_state begins with: the three tensors of AttentionState::empty, for queries and values like these.
std::vector<at::Tensor> empty_state(const at::Tensor& q, const at::Tensor& v) {
  const char* const op = "cosformer::attention_state";
  for (const auto& [name, x] : {std::pair("q", &q), std::pair("v", &v)}) {
    TORCH_CHECK_VALUE(x->dim() == 4, op, ": argument '", name,
                      "' must be of 4 dimensions [batch, time, heads, dim]; got ", x->dim(), ": ", x->sizes());
  }
  const AttentionState state =
      AttentionState::empty(q.size(0), q.size(2), q.size(3), v.size(3), q.options().requires_grad(false));
  return {state.kv, state.z, state.position};
}

// The state as one argument, and advanced, position and all.
std::tuple<at::Tensor, std::vector<at::Tensor>> carry_state(const at::Tensor& q, const at::Tensor& k,
                                                            const at::Tensor& v, at::TensorList state, double horizon,
                                                            const OptionalTensor& theta,
                                                            const OptionalTensor& log_decay,
                                                            c10::string_view feature_map, bool reweight,
                                                            c10::string_view normalizer, double eps) {
  TORCH_CHECK_VALUE(state.size() == 3,
                    "cosformer::attention_with_state: argument 'state' must be the three tensors that "
                    "attention_state makes (sums of keys and values, sums of keys, positions); got ",
                    state.size());
  static const auto op = registered<StreamResult(COSFORMER_STREAM_PARAMETERS)>("cosformer::attention_with_state");
  const auto [out, kv, z] =
      op.call(q, k, v, state[0], state[1], state[2], horizon, theta, log_decay, feature_map, reweight, normalizer, eps);
  return {out, {kv, z, state[2] + q.size(1)}};
}

}  // namespace

TORCH_LIBRARY(cosformer, m) {
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, *, bool causal=False, float? horizon=None, Tensor? theta=None, "
      "Tensor? log_decay=None, str feature_map=\"relu\", bool reweight=True, str normalizer=\"sum\", float eps=1e-6, "
      "Tensor? key_mask=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None) -> Tensor");
  m.def(
      "attention_with_state(Tensor q, Tensor k, Tensor v, Tensor state_kv, Tensor state_z, Tensor position, *, "
      "float horizon, Tensor? theta=None, Tensor? log_decay=None, str feature_map=\"relu\", bool reweight=True, "
      "str normalizer=\"sum\", float eps=1e-6) -> (Tensor out, Tensor state_kv, Tensor state_z)");
  // Made of the one above, so that autograd, autocast and devices take part through it.
  m.def(
      "attention_with_state.carried(Tensor q, Tensor k, Tensor v, Tensor[] state, *, float horizon, "
      "Tensor? theta=None, Tensor? log_decay=None, str feature_map=\"relu\", bool reweight=True, "
      "str normalizer=\"sum\", float eps=1e-6) -> (Tensor out, Tensor[] state)",
      carry_state);
  m.def("attention_state(Tensor q, Tensor v) -> Tensor[]", empty_state);
  m.def("_attention_fwd(" COSFORMER_DEVICE_SCHEMA
        ", bool for_backward) -> (Tensor out, Tensor denominator, Tensor state_kv, Tensor state_z)");
  m.def(
      "_attention_bwd(Tensor dout, Tensor? d_state_kv, Tensor? d_state_z, Tensor out, Tensor "
      "denominator, Tensor? sum_kv, Tensor? sum_z, " COSFORMER_DEVICE_SCHEMA
      ") -> (Tensor dq, Tensor dk, Tensor dv, Tensor d_log_decay, Tensor d_state_kv, Tensor d_state_z)");
}

TORCH_LIBRARY_IMPL(cosformer, Autograd, m) {
  m.impl("attention", attention_with_gradients);
  m.impl("attention_with_state", stream_with_gradients);
}

TORCH_LIBRARY_IMPL(cosformer, CPU, m) {
  m.impl("attention", attention_below_autograd);
  m.impl("attention_with_state", stream_below_autograd);
}

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("attention", attention_below_autograd);
  m.impl("attention_with_state", stream_below_autograd);
}

TORCH_LIBRARY_IMPL(cosformer, Meta, m) {
  m.impl("attention", attention_below_autograd);
  m.impl("attention_with_state", stream_below_autograd);
  m.impl("_attention_fwd", meta_fwd);
  m.impl("_attention_bwd", meta_bwd);
}

TORCH_LIBRARY_IMPL(cosformer, AutocastCPU, m) {
  m.impl("attention", attention_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>);
  m.impl("attention_with_state", stream_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>);
}

TORCH_LIBRARY_IMPL(cosformer, Autocast, m) {
  m.impl("attention", attention_autocast<c10::DispatchKey::Autocast, c10::DeviceType::CUDA>);
  m.impl("attention_with_state", stream_autocast<c10::DispatchKey::Autocast, c10::DeviceType::CUDA>);
}

}  // namespace cosformer::ops
