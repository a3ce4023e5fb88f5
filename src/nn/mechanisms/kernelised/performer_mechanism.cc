#include "nn/mechanisms/kernelised/performer_mechanism.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "cosformer/attention.h"
#include "kernels/attention.h"
#include "nn/full_precision.h"
#include "nn/mechanisms/kernelised/feature_attention.h"

namespace cosformer::nn {
namespace {

// w_f·x − |x|²/2 with x scaled by d^(−1/4): [B, T, H, D] → [B, H, T, M], the logarithm of the features but for 1/√M.
at::Tensor log_features(const at::Tensor& x, const at::Tensor& projection, std::int64_t dim) {
  const at::Tensor scaled = at_least_float(x).transpose(1, 2) * std::pow(static_cast<double>(dim), -0.25);
  return at::matmul(scaled, projection.transpose(1, 2)) - scaled.square().sum(-1, true) * 0.5;
}

constexpr double kNoKeys = -1e30;  // less than any logarithm of a feature

}  // namespace

PerformerMechanism::PerformerMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  projection = register_buffer("projection", orthogonal_directions(shape.heads, config.features, shape.query_dim()));
  forwards_ = register_buffer("forwards", RedrawSchedule::new_count());
}

at::Tensor PerformerMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const at::Tensor& key_mask) {
  if (is_training() && schedule_.is_due(forwards_, config_.redraw)) {
    at::NoGradGuard no_grad;
    projection.copy_(orthogonal_directions(shape_.heads, config_.features, shape_.query_dim()));
  }
  at::Tensor query_features, key_features;
  {
    const FullPrecision full_precision;
    // A copy where it may change before the backward pass.
    const at::Tensor w = (config_.redraw > 0 ? projection.clone() : projection).to(at_least_float(q).scalar_type());
    // Any factor of a query's features, and any factor common to all keys, cancels in the division. The greatest is
    // made one.
    const at::Tensor query = log_features(q, w, shape_.dim);
    query_features = (query - query.detach().amax(-1, true)).exp();
    at::Tensor key = log_features(k, w, shape_.dim);
    if (key_mask.defined()) {
      key =
          key.masked_fill(key_mask.logical_not().unsqueeze(1).unsqueeze(-1), -std::numeric_limits<double>::infinity());
    }
    key_features = (key - key.detach().amax({2, 3}, true).clamp_min(kNoKeys)).exp();
  }
  const double factor = 1 / std::sqrt(static_cast<double>(config_.features));
  return feature_attention((query_features * factor).transpose(1, 2), (key_features * factor).transpose(1, 2), v,
                           shape_.causal, config_.eps);
}

MechanismState PerformerMechanism::empty_state(std::int64_t batch, const at::TensorOptions& like) const {
  if (config_.features > kernels::kMaxHeadDim) {
    throw UserError(
        fmt::format("settings: attention \"performer\" carries a state of at most {} attention.features; got {}",
                    kernels::kMaxHeadDim, config_.features));
  }
  if (is_training() && config_.redraw > 0) {
    throw UserError(
        "settings: attention \"performer\" cannot carry a state over a new drawing of its features; set "
        "attention.redraw=0 to train with a carried state");
  }
  const AttentionState state = AttentionState::empty(batch, shape_.heads, config_.features, shape_.dim, like);
  return {{state.kv, state.z, at::zeros({batch, shape_.heads}, state.z.options())}};
}

at::Tensor PerformerMechanism::forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                              MechanismState& state, const StreamClock& clock) {
  at::Tensor query_features, key_features, before, scale;
  {
    const FullPrecision full_precision;
    const at::Tensor w = projection.to(at_least_float(q).scalar_type());
    const at::Tensor query = log_features(q, w, shape_.dim), key = log_features(k, w, shape_.dim);
    query_features = (query - query.detach().amax(-1, true)).exp();
    // The factor that all keys have in common follows the greatest so far, and what was summed before follows it.
    before = state.tensors.at(2).masked_fill((clock.position() == 0).unsqueeze(1), kNoKeys);
    scale = at::maximum(before, key.detach().amax({2, 3}));
    key_features = (key - scale.unsqueeze(-1).unsqueeze(-1)).exp();
  }
  const at::Tensor change = (before - scale).exp().unsqueeze(-1).unsqueeze(-1);  // [B, H, 1, 1]
  AttentionState carried{state.tensors[0] * change.unsqueeze(-1), state.tensors[1] * change, clock.position()};
  StreamOptions o;
  o.horizon = 1;  // not read without re-weighting
  o.feature_map = "identity";
  o.reweight = false;
  o.eps = config_.eps;
  const double factor = 1 / std::sqrt(static_cast<double>(config_.features));
  const auto features = [&](const at::Tensor& x) { return (x * factor).transpose(1, 2).to(v.scalar_type()); };
  const at::Tensor out = attention_with_state(features(query_features), features(key_features), v, carried, o);
  state.tensors = {carried.kv, carried.z, scale};
  return out;
}

}  // namespace cosformer::nn
