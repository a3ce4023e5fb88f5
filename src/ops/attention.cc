// The C++ face of the operators: include/cosformer/attention.h.
#include "cosformer/attention.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "ops/arguments.h"
#include "ops/device_ops.h"
#include "ops/plain_errors.h"
#include "ops/registered.h"

namespace cosformer {
namespace {

using ops::Optional;
using ops::optional;
using ops::OptionalTensor;

// Without a tensor the dispatcher has no device to choose an implementation for, and says so in its own words.
void require_defined(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  for (const auto& [name, tensor] : {std::pair("q", &q), std::pair("k", &k), std::pair("v", &v)}) {
    TORCH_CHECK_VALUE(tensor->defined(), op, ": argument '", name,
                      "' must be a tensor [batch, time, heads, dim]; got nothing");
  }
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionOptions& o) {
  // Through the dispatcher, so that autograd, autocast and devices all take part.
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool, Optional<double>,
                               const OptionalTensor&, const OptionalTensor&, c10::string_view, bool, c10::string_view,
                               double, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&);
  static const auto op = ops::registered<Signature>("cosformer::attention");
  const Optional<double> horizon = o.horizon.has_value() ? Optional<double>(*o.horizon) : Optional<double>();
  return ops::with_plain_errors([&] {
    require_defined("cosformer::attention", q, k, v);
    return op.call(q, k, v, o.causal, horizon, optional(o.theta), optional(o.log_decay), o.feature_map, o.reweight,
                   o.normalizer, o.eps, optional(o.key_mask), optional(o.cu_seqlens_q), optional(o.cu_seqlens_k));
  });
}

AttentionState AttentionState::empty(std::int64_t batch, std::int64_t heads, std::int64_t dim, std::int64_t value_dim,
                                     const at::TensorOptions& options) {
  const auto numbers = options.dtype(ops::accumulation_type(c10::typeMetaToScalarType(options.dtype())));
  return ops::with_plain_errors([&] {
    TORCH_CHECK_VALUE(std::min({batch, heads, dim, value_dim}) >= 0,
                      "cosformer::AttentionState: its sizes must be at least 0; got batch ", batch, ", heads ", heads,
                      ", dim ", dim, ", value_dim ", value_dim);
    return AttentionState{at::zeros({batch, heads, 2, dim, value_dim}, numbers),
                          at::zeros({batch, heads, 2, dim}, numbers),
                          at::zeros({batch}, options.dtype(at::kLong).requires_grad(false))};
  });
}

at::Tensor attention_with_state(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, AttentionState& state,
                                const StreamOptions& o) {
  using Signature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
      const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
      double, const OptionalTensor&, const OptionalTensor&, c10::string_view, bool, c10::string_view, double);
  static const auto op = ops::registered<Signature>("cosformer::attention_with_state");
  return ops::with_plain_errors([&] {
    require_defined("cosformer::attention_with_state", q, k, v);
    auto [out, kv, z] = op.call(q, k, v, state.kv, state.z, state.position, o.horizon, optional(o.theta),
                                optional(o.log_decay), o.feature_map, o.reweight, o.normalizer, o.eps);
    state = {kv, z, state.position + q.size(1)};
    return out;
  });
}

}  // namespace cosformer
