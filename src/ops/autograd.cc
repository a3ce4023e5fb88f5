// Gradients of the operators, and the operators themselves below the autograd layer.
#include "ops/autograd.h"

#include <cstddef>
#include <utility>

#include <torch/csrc/autograd/custom_function.h>

#include "ops/boxing.h"
#include "ops/device_ops.h"

namespace cosformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kValues = "values";
constexpr std::ptrdiff_t kResults = 4;  // saved before the arguments: out, denominator, sum_kv, sum_z

void save(AutogradContext* ctx, const AttentionArguments& a, const variable_list& results) {
  variable_list tensors = results;
  AttentionArguments::each(
      [&](const Field&, const auto& x) {
        if constexpr (kIsTensor<decltype(x)>) tensors.push_back(x);
      },
      a);
  ctx->save_for_backward(std::move(tensors));
  ctx->saved_data[kValues] = values_of(a);
}

// From `next` on among the saved tensors.
AttentionArguments restore(AutogradContext* ctx, variable_list::const_iterator next) {
  AttentionArguments a;
  AttentionArguments::each(
      [&next](const Field&, auto& x) {
        if constexpr (kIsTensor<decltype(x)>) x = *next++;
      },
      a);
  set_values(a, ctx->saved_data[kValues]);
  return a;
}

// The differentiable arguments that were given, which autograd wants to see.
variable_list given_variables(const AttentionArguments& a) {
  variable_list variables;
  variables.reserve(8);
  for_each_differentiable(
      [&variables](const Field&, const at::Tensor& x) {
        if (x.defined()) variables.push_back(x);
      },
      a);
  return variables;
}

// The backward pass as a function of its own: differentiating it once more is refused, not silently wrong.
struct AttentionBackward : torch::autograd::Function<AttentionBackward> {
  static variable_list forward(AutogradContext*, at::TensorList /*variables*/, const BackwardInputs& in,
                               const AttentionArguments& a) {
    at::AutoDispatchBelowADInplaceOrView below;
    const BackwardResult result = call_bwd(in, a);
    variable_list gradients;
    for_each_differentiable(
        [&gradients](const Field& field, const at::Tensor& x, const at::Tensor& gradient) {
          if (!x.defined()) return;
          TORCH_CHECK(gradient.defined(), "cosformer::attention: no gradient of '", field.name, "' on ", x.device());
          gradients.push_back(gradient);
        },
        a, result.d);
    return gradients;
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK(false,
                "cosformer::attention: double backward is not supported; call backward without create_graph=True");
  }
};

// Differentiable in q, k, v, some options and the incoming state; through the output and the outgoing state.
struct Attention : torch::autograd::Function<Attention> {
  static variable_list forward(AutogradContext* ctx, at::TensorList /*variables*/, const AttentionArguments& a,
                               bool for_backward) {
    at::AutoDispatchBelowADInplaceOrView below;
    ForwardResult r = call_fwd(a, for_backward);
    if (for_backward) {
      AttentionArguments kept = a;
      // Callers advance their position in place between calls; the backward pass needs it as it was.
      if (a.position.defined()) kept.position = a.position.clone();
      // The outgoing state is a result, and not looked at again.
      save(ctx, kept,
           a.has_state() ? variable_list{r.out, r.denominator, {}, {}}
                         : variable_list{r.out, r.denominator, r.state_kv, r.state_z});
    }
    if (a.has_state()) return {r.out, r.state_kv, r.state_z};
    return {r.out};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const AttentionArguments a = restore(ctx, saved.begin() + kResults);
    BackwardInputs in{grads[0], {}, {}, saved[0], saved[1], saved[2], saved[3]};
    variable_list variables = given_variables(a);
    variables.push_back(in.dout);
    if (a.has_state()) {
      in.d_state_kv = grads[1];
      in.d_state_z = grads[2];
      variables.insert(variables.end(), {in.d_state_kv, in.d_state_z});
    }
    variable_list gradients = AttentionBackward::apply(at::TensorList(variables), in, a);
    gradients.resize(gradients.size() + 2);  // the arguments that are no variables
    return gradients;
  }
};

// Whether anything will ask for gradients; else nothing is kept for them. The function is applied in any case: it
// refuses what it cannot do, forward-mode derivatives for one.
variable_list apply(const AttentionArguments& a) {
  const variable_list variables = given_variables(a);
  bool wanted = false;
  for (const at::Tensor& x : variables) wanted = wanted || x.requires_grad();
  return Attention::apply(at::TensorList(variables), a, wanted && at::GradMode::is_enabled());
}

}  // namespace

at::Tensor attention_on_device(const AttentionArguments& a) {
  return call_fwd(a, /*for_backward=*/false).out;
}

StreamResult stream_on_device(const AttentionArguments& a) {
  const ForwardResult r = call_fwd(a, /*for_backward=*/false);
  return {r.out, r.state_kv, r.state_z};
}

at::Tensor attention_autograd(const AttentionArguments& a) {
  return apply(a)[0];
}

StreamResult stream_autograd(const AttentionArguments& a) {
  const variable_list results = apply(a);
  return {results[0], results[1], results[2]};
}

}  // namespace cosformer::ops
