// The two operators that a device implements: one forward and one backward pass over checked arguments.
//
// They are registered with the dispatcher next to the public ones, so that a device file ends with its own
// TORCH_LIBRARY_IMPL and nothing here knows which devices exist.
#pragma once

#include "ops/arguments.h"

namespace cosformer::ops {

struct ForwardResult {
  at::Tensor out;
  at::Tensor denominator;  // empty without a normalizer
  // Without a carried state: empty, or with for_backward what the device wants back in its backward pass.
  at::Tensor state_kv, state_z;

  template <class Visit, class... Results>
  static void each(const Visit& visit, Results&... r) {
    visit(Field{"out", kRequired}, r.out...);
    visit(Field{"denominator", kRequired}, r.denominator...);
    visit(Field{"state_kv"}, r.state_kv...);
    visit(Field{"state_z"}, r.state_z...);
  }
};

// What arrives at, and was kept for, a backward pass.
struct BackwardInputs {
  at::Tensor dout, d_state_kv, d_state_z;  // the latter two undefined without a state
  at::Tensor out, denominator;
  at::Tensor sum_kv, sum_z;  // the states that a forward pass without a carried state returned

  template <class Visit, class... Inputs>
  static void each(const Visit& visit, Inputs&... in) {
    visit(Field{"dout", kRequired}, in.dout...);
    visit(Field{"d_state_kv"}, in.d_state_kv...);
    visit(Field{"d_state_z"}, in.d_state_z...);
    visit(Field{"out", kRequired}, in.out...);
    visit(Field{"denominator", kRequired}, in.denominator...);
    visit(Field{"sum_kv"}, in.sum_kv...);
    visit(Field{"sum_z"}, in.sum_z...);
  }
};

// Of every differentiable argument that was given, its gradient, in the place of the argument.
struct BackwardResult {
  AttentionArguments d;

  template <class Visit, class... Results>
  static void each(const Visit& visit, Results&... r) {
    for_each_differentiable(visit, r.d...);
  }
};

// How a device implements them: ForwardResult f(const AttentionArguments&, bool for_backward) and
// BackwardResult f(const BackwardInputs&, const AttentionArguments&), registered by m.impl("_attention_fwd",
// boxed<f>()).
ForwardResult call_fwd(const AttentionArguments& a, bool for_backward);
BackwardResult call_bwd(const BackwardInputs& inputs, const AttentionArguments& a);

// Where a forward pass leaves its denominators, [batch, time, heads]; empty without a normalizer. A head's lie side by
// side: passes go through one head at a time.
at::Tensor empty_denominators(const AttentionArguments& a);

}  // namespace cosformer::ops
