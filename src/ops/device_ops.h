// The two operators that a device implements: one forward and one backward pass over checked arguments.
//
// They are registered with the dispatcher next to the public ones, so that a device file ends with its own
// TORCH_LIBRARY_IMPL and nothing here knows which devices exist.
#pragma once

#include <tuple>

#include "ops/arguments.h"

namespace cosformer::ops {

using OptionalTensor = Optional<at::Tensor>;

// The dispatcher's spelling of an absent tensor, and ours (undefined).
inline OptionalTensor optional(const at::Tensor& x) {
  return x.defined() ? OptionalTensor(x) : OptionalTensor();
}
inline at::Tensor tensor(const OptionalTensor& x) {
  return x.has_value() ? *x : at::Tensor();
}

#define COSFORMER_DEVICE_ARGUMENTS                                                                                    \
  const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, const OptionalTensor &theta,                         \
      const OptionalTensor &log_decay, const OptionalTensor &key_mask, const OptionalTensor &cu_seqlens_q,            \
      const OptionalTensor &cu_seqlens_k, const OptionalTensor &state_kv, const OptionalTensor &state_z,              \
      const OptionalTensor &position, double horizon, bool causal, std::int64_t feature_map, std::int64_t normalizer, \
      double eps

#define COSFORMER_DEVICE_SCHEMA                                                                              \
  "Tensor q, Tensor k, Tensor v, Tensor? theta, Tensor? log_decay, Tensor? key_mask, Tensor? cu_seqlens_q, " \
  "Tensor? cu_seqlens_k, Tensor? state_kv, Tensor? state_z, Tensor? position, float horizon, bool causal, "  \
  "int feature_map, int normalizer, float eps"

// out, denominator (empty without a normalizer), state_kv, state_z (without a carried state: empty, or with
// for_backward what the device wants back in its backward pass)
using ForwardResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
// dq, dk, dv, d_log_decay (empty without a decay), d_state_kv, d_state_z (empty without a state)
using BackwardResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// What arrives at, and was kept for, a backward pass.
struct BackwardInputs {
  at::Tensor dout, d_state_kv, d_state_z;  // the latter two undefined without a state
  at::Tensor out, denominator;
  at::Tensor sum_kv, sum_z;  // the states that a forward pass without a carried state returned
};

ForwardResult call_fwd(const AttentionArguments& a, bool for_backward);
BackwardResult call_bwd(const BackwardInputs& inputs, const AttentionArguments& a);

// Back from the dispatcher's spelling.
AttentionArguments collect(COSFORMER_DEVICE_ARGUMENTS);

// Where a forward pass leaves its denominators, [batch, time, heads]; empty without a normalizer. A head's lie side by
// side: passes go through one head at a time.
at::Tensor empty_denominators(const AttentionArguments& a);

}  // namespace cosformer::ops
