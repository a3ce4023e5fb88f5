// The C++ face of the operators: include/cosformer/attention.h.
#include "cosformer/attention.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "ops/arguments.h"
#include "ops/autograd.h"
#include "ops/boxing.h"
#include "ops/plain_errors.h"
#include "ops/registered.h"

namespace cosformer {
namespace {

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
  static const c10::OperatorHandle op = ops::operator_named("cosformer::attention");
  return ops::with_plain_errors([&] {
    require_defined("cosformer::attention", q, k, v);
    ops::PlainCall call;
    call.q = q;
    call.k = k;
    call.v = v;
    call.options = o;
    return ops::call<at::Tensor>(op, call);
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
  static const c10::OperatorHandle op = ops::operator_named("cosformer::attention_with_state");
  return ops::with_plain_errors([&] {
    require_defined("cosformer::attention_with_state", q, k, v);
    ops::StreamCall call;
    call.q = q;
    call.k = k;
    call.v = v;
    call.state_kv = state.kv;
    call.state_z = state.z;
    call.position = state.position;
    call.options = ops::whole_options(o);
    auto [out, kv, z] = ops::call<ops::StreamResult>(op, call);
    state = {kv, z, state.position + q.size(1)};
    return out;
  });
}

}  // namespace cosformer
