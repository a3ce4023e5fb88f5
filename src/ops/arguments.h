// The arguments of both operators: how they cross the dispatcher, and what is required of them.
#pragma once

#include <array>
#include <type_traits>

#include <ATen/ATen.h>

#include "ops/options.h"

namespace cosformer::ops {

// Tensors are undefined where they are absent.
struct AttentionArguments {
  at::Tensor q, k, v;
  at::Tensor state_kv, state_z, position;  // the carried state: all or none
  AttentionOptions options;

  bool has_state() const { return state_kv.defined(); }
  bool packed() const { return options.cu_seqlens_q.defined(); }
  bool packed_on_cpu() const { return packed() && options.cu_seqlens_q.is_cpu(); }

  template <class Visit, class... Arguments>
  static void each_input(const Visit& visit, Arguments&... a) {
    visit(Field{"q", kRequired | kDifferentiable}, a.q...);
    visit(Field{"k", kRequired | kDifferentiable}, a.k...);
    visit(Field{"v", kRequired | kDifferentiable}, a.v...);
  }
  template <class Visit, class... Arguments>
  static void each_of_the_state(const Visit& visit, Arguments&... a) {
    visit(Field{"state_kv", kDifferentiable}, a.state_kv...);
    visit(Field{"state_z", kDifferentiable}, a.state_z...);
    visit(Field{"position"}, a.position...);
  }

  // As a device is given them.
  template <class Visit, class... Arguments>
  static void each(const Visit& visit, Arguments&... a) {
    each_input(visit, a...);
    each_of_the_state(visit, a...);
    for_each_option(visit, a.options...);
  }
};

// As cosformer::attention is given them.
struct PlainCall : AttentionArguments {
  template <class Visit, class... Arguments>
  static void each(const Visit& visit, Arguments&... a) {
    each_input(visit, a...);
    for_each_option(visit, a.options...);
  }
};

// As cosformer::attention_with_state is.
struct StreamCall : AttentionArguments {
  StreamCall() { options.causal = true; }

  template <class Visit, class... Arguments>
  static void each(const Visit& visit, Arguments&... a) {
    each_input(visit, a...);
    each_of_the_state(visit, a...);
    for_each_option<kStreamed>(visit, a.options...);
  }
};

// visit(Field, a.tensor, b.tensor, …) for everything that has a gradient.
template <class Visit, class... Arguments>
void for_each_differentiable(const Visit& visit, Arguments&... arguments) {
  AttentionArguments::each(
      [&visit](const Field& field, auto&... x) {
        if constexpr ((std::is_same_v<std::decay_t<decltype(x)>, at::Tensor> && ...)) {
          if ((field.traits & kDifferentiable) != 0) visit(field, x...);
        }
      },
      arguments...);
}

// The names of kernels::FeatureMap and kernels::Normalizer, by their numbers: the operators' and cosformer info's.
inline constexpr std::array<const char*, 5> kFeatureMaps{"relu", "elu1", "leaky_relu", "silu", "identity"};
inline constexpr std::array<const char*, 2> kNormalizers{"sum", "none"};

// Throws c10::ValueError naming the argument, what was expected and what came. Contents of device tensors are never
// read: those of lengths, positions and decays are checked for CPU tensors only.
void check_arguments(const PlainCall& call);
void check_arguments(const StreamCall& call);

// θ of a sequence follows from a horizon unless theta is given.
constexpr double kOwnHorizon = 0.0;  // max(Tq, Tk) of each sequence
// The horizon of checked options: infinite, θ = 0, where nothing is re-weighted.
double horizon_of(const AttentionOptions& options);

// The dtype of states and denominators: float64 for float64 inputs, else float32.
at::ScalarType accumulation_type(at::ScalarType type);

}  // namespace cosformer::ops
