// The public schemas, and the public operators under each dispatch key. Devices register themselves.
#include <string>
#include <utility>
#include <vector>

#include <ATen/autocast_mode.h>
#include <fmt/core.h>
#include <torch/library.h>

#include "cosformer/attention.h"
#include "ops/autograd.h"
#include "ops/boxing.h"
#include "ops/device_ops.h"
#include "ops/registered.h"
#include "ops/schema.h"
#include "ops/torch_compat.h"

namespace cosformer::ops {
namespace {

using torch::jit::Stack;

at::Tensor attention_with_gradients(const PlainCall& call) {
  check_arguments(call);
  return attention_autograd(call);
}

StreamResult stream_with_gradients(const StreamCall& call) {
  check_arguments(call);
  return stream_autograd(call);
}

// Below autograd: inference mode, and libraries built without it.
at::Tensor attention_below_autograd(const PlainCall& call) {
  check_arguments(call);
  return attention_on_device(call);
}

StreamResult stream_below_autograd(const StreamCall& call) {
  check_arguments(call);
  return stream_on_device(call);
}

// Autocast runs q, k and v, the first three arguments of both operators, in its low precision. Angles, decays and
// states are float32 in any case.
template <c10::DispatchKey kKey, c10::DeviceType kDevice>
void in_low_precision(const c10::OperatorHandle& op, Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const std::size_t count = op.schema().arguments().size();
  for (std::size_t at = 0; at < 3; ++at) {
    c10::IValue& x = torch::jit::peek(*stack, at, count);
    if (x.isTensor()) x = at::autocast::cached_cast(autocast_type(kDevice), x.toTensor(), kDevice);
  }
  op.callBoxed(stack);
}

ForwardResult meta_fwd(const AttentionArguments& a, bool /*for_backward*/) {
  const auto accumulation = a.q.options().dtype(accumulation_type(a.q.scalar_type()));
  return {at::empty({a.q.size(0), a.q.size(1), a.q.size(2), a.v.size(3)}, a.v.options()), empty_denominators(a),
          a.has_state() ? at::empty(a.state_kv.sizes(), accumulation) : at::empty({0}, accumulation),
          a.has_state() ? at::empty(a.state_z.sizes(), accumulation) : at::empty({0}, accumulation)};
}

BackwardResult meta_bwd(const BackwardInputs& /*in*/, const AttentionArguments& a) {
  BackwardResult result;
  for_each_differentiable(
      [](const Field&, const at::Tensor& x, at::Tensor& gradient) {
        if (x.defined()) gradient = at::empty_like(x, at::MemoryFormat::Contiguous);
      },
      a, result.d);
  return result;
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

// The state as one argument, the fourth, and advanced, position and all.
void carry_state(const c10::OperatorHandle& op, Stack* stack) {
  constexpr std::size_t kState = 3;
  static const c10::OperatorHandle one_by_one = operator_named("cosformer::attention_with_state");
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const at::Tensor q = first->toTensor();
  const std::vector<at::Tensor> state = first[kState].toTensorVector();
  TORCH_CHECK_VALUE(state.size() == 3,
                    "cosformer::attention_with_state: argument 'state' must be the three tensors that "
                    "attention_state makes (sums of keys and values, sums of keys, positions); got ",
                    state.size());
  first[kState] = state[0];
  stack->insert(first + kState + 1, {state[1], state[2]});
  one_by_one.callBoxed(stack);
  const at::Tensor z = torch::jit::pop(*stack).toTensor(), kv = torch::jit::pop(*stack).toTensor();
  stack->emplace_back(std::vector<at::Tensor>{kv, z, state[2] + q.size(1)});
}

}  // namespace

TORCH_LIBRARY(cosformer, m) {
  const std::string options = schema_of_options(AttentionOptions());
  const std::string stream_options = schema_of_options<kStreamed>(StreamOptions());
  m.def(fmt::format("attention(Tensor q, Tensor k, Tensor v, *, {}) -> Tensor", options).c_str());
  m.def(fmt::format("attention_with_state(Tensor q, Tensor k, Tensor v, Tensor state_kv, Tensor state_z, Tensor "
                    "position, *, {}) -> (Tensor out, Tensor state_kv, Tensor state_z)",
                    stream_options)
            .c_str());
  // Made of the one above, so that autograd, autocast and devices take part through it.
  m.def(fmt::format("attention_with_state.carried(Tensor q, Tensor k, Tensor v, Tensor[] state, *, {}) -> (Tensor "
                    "out, Tensor[] state)",
                    stream_options)
            .c_str(),
        torch::CppFunction::makeFromBoxedFunction<&carry_state>());
  m.def("attention_state(Tensor q, Tensor v) -> Tensor[]", empty_state);
}

TORCH_LIBRARY_IMPL(cosformer, Autograd, m) {
  m.impl("attention", boxed<attention_with_gradients>());
  m.impl("attention_with_state", boxed<stream_with_gradients>());
}

TORCH_LIBRARY_IMPL(cosformer, CPU, m) {
  m.impl("attention", boxed<attention_below_autograd>());
  m.impl("attention_with_state", boxed<stream_below_autograd>());
}

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("attention", boxed<attention_below_autograd>());
  m.impl("attention_with_state", boxed<stream_below_autograd>());
}

TORCH_LIBRARY_IMPL(cosformer, Meta, m) {
  m.impl("attention", boxed<attention_below_autograd>());
  m.impl("attention_with_state", boxed<stream_below_autograd>());
  m.impl("_attention_fwd", boxed<meta_fwd>());
  m.impl("_attention_bwd", boxed<meta_bwd>());
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
torch::CppFunction autocast() {
  return torch::CppFunction::makeFromBoxedFunction<&in_low_precision<kKey, kDevice>>();
}

TORCH_LIBRARY_IMPL(cosformer, AutocastCPU, m) {
  m.impl("attention", autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>());
  m.impl("attention_with_state", autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>());
}

TORCH_LIBRARY_IMPL(cosformer, Autocast, m) {
  m.impl("attention", autocast<c10::DispatchKey::Autocast, c10::DeviceType::CUDA>());
  m.impl("attention_with_state", autocast<c10::DispatchKey::Autocast, c10::DeviceType::CUDA>());
}

}  // namespace cosformer::ops
