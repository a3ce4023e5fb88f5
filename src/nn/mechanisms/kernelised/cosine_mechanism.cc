#include "nn/mechanisms/kernelised/cosine_mechanism.h"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "cosformer/attention.h"
#include "kernels/attention.h"
#include "nn/full_precision.h"
#include "nn/positions/horizon.h"
#include "ops/options.h"

namespace cosformer::nn {
namespace {

// `count` numbers from `first` to `last`, each the same multiple of the one before it.
at::Tensor geometric(double first, double last, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t at = 0; at < count; ++at) {
    const double share = count > 1 ? static_cast<double>(at) / static_cast<double>(count - 1) : 0.5;
    values[static_cast<std::size_t>(at)] = static_cast<float>(first * std::pow(last / first, share));
  }
  return at::tensor(values);
}

// The fastest of spread angles turns a weight's sign within this many tokens.
constexpr double kShortestQuarterPeriod = 32;

// Where learned angles that must stay below π/2M begin, as a logit of their share of it: 0.95.
constexpr double kFirstAngleLogit = 3;

at::Tensor mapped(const std::string& feature_map, const at::Tensor& x) {
  if (feature_map == "relu") return x.relu();
  if (feature_map == "elu1") return at::elu(x) + 1;
  if (feature_map == "leaky_relu") return at::leaky_relu(x, kernels::kLeakyReluSlope);
  if (feature_map == "silu") return at::silu(x);
  if (feature_map == "identity") return x;
  throw std::logic_error(
      fmt::format("the feature map '{}' has no form for torch's tensors; it is missing from mapped() in "
                  "nn/mechanisms/kernelised/cosine_mechanism.cc",
                  feature_map));
}

}  // namespace

CosineMechanism::CosineMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape), divides_(config.normalizer == "sum" && !config.head_norm) {
  config_.horizon = checked_horizon(config, shape);
  // Learned angles are part of the features, of which there are then twice as many.
  const std::int64_t most = config.theta_learned ? kernels::kMaxHeadDim / 2 : kernels::kMaxHeadDim;
  if (std::max(shape.dim, shape.query_dim()) > most) {
    throw UserError(fmt::format("settings: attention \"{}\" takes heads of at most {} dimensions{}; got {}",
                                config.name, most, config.theta_learned ? " with attention.theta_learned" : "",
                                std::max(shape.dim, shape.query_dim())));
  }
  if (config_.decay) {
    log_rate = register_parameter("log_rate",
                                  geometric(config_.decay_shortest, config_.decay_longest, shape.heads).log().neg());
  }
  if (config_.theta_spread) {
    const double slowest = std::numbers::pi / (2 * config_.horizon);
    const double fastest = std::max(slowest, std::numbers::pi / (2 * kShortestQuarterPeriod));
    theta = register_buffer("theta", geometric(slowest, fastest, shape.heads));
  }
  if (config_.theta_learned) {
    angle = register_parameter("angle", at::full({shape.heads}, divides_ ? kFirstAngleLogit : 1.0));
  }
}

at::Tensor CosineMechanism::log_decay() const {
  // Beyond e^10 nothing is left of the next token's weight; an infinite rate would be refused.
  return log_rate.defined() ? at_least_float(log_rate).clamp_max(10).exp().neg() : at::Tensor();
}

at::Tensor CosineMechanism::learned_theta() const {
  const double paper = std::numbers::pi / (2 * config_.horizon);
  if (divides_) return angle.sigmoid() * paper;
  return theta.defined() ? angle * theta : angle * paper;
}

at::Tensor CosineMechanism::head_angles() const {
  if (config_.theta_learned) return learned_theta().to(at::kDouble);
  if (theta.defined()) return theta.to(at::kDouble);
  return at::full({shape_.heads}, std::numbers::pi / (2 * config_.horizon), at::kDouble);
}

at::Tensor CosineMechanism::features(const at::Tensor& x) const {
  return mapped(config_.feature_map, at_least_float(x));
}

// cos(a − b) = cos a cos b + sin a sin b, written out, because the operator does not differentiate its angles.
at::Tensor CosineMechanism::full_features(const at::Tensor& x, const at::Tensor& positions) const {
  const at::Tensor y = features(x);
  if (!config_.reweight) return y;
  const at::Tensor angles =
      (positions.to(at::kDouble).unsqueeze(-1) * head_angles().to(x.device())).unsqueeze(-1);  // [(B,) T, H, 1]
  return at::cat({y * angles.cos().to(y.scalar_type()), y * angles.sin().to(y.scalar_type())}, -1);
}

at::Tensor CosineMechanism::turned_features(const at::Tensor& x, const at::Tensor& positions) const {
  return full_features(x, positions).to(x.scalar_type());
}

AttentionOptions CosineMechanism::options() const {
  AttentionOptions o = ops::whole_options(stream_options());
  o.causal = shape_.causal;
  if (!o.reweight || o.theta.defined()) o.horizon.reset();
  return o;
}

StreamOptions CosineMechanism::stream_options() const {
  StreamOptions o;
  o.horizon = config_.horizon;
  o.log_decay = log_decay();
  o.normalizer = divides_ ? "sum" : "none";
  o.eps = config_.eps;
  o.feature_map = config_.theta_learned ? "identity" : config_.feature_map;
  o.reweight = config_.reweight && !config_.theta_learned;
  if (!config_.theta_learned) o.theta = theta;
  return o;
}

at::Tensor CosineMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_mask) {
  AttentionOptions o = options();
  o.key_mask = key_mask;
  if (!config_.theta_learned) return attention(q, k, v, o);
  const auto turned = [&](const at::Tensor& x) {
    return turned_features(x, at::arange(x.size(1), x.options().dtype(at::kLong)));
  };
  return attention(turned(q), turned(k), v, o);
}

at::Tensor CosineMechanism::forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const Packing& packing) {
  AttentionOptions o = options();
  o.cu_seqlens_q = packing.cu_seqlens;
  o.cu_seqlens_k = packing.cu_seqlens;
  const auto row = [](const at::Tensor& x) { return x.flatten(0, 1).unsqueeze(0); };
  const auto turned = [&](const at::Tensor& x) {
    return row(config_.theta_learned ? turned_features(x, packing.position) : x);
  };
  return attention(turned(q), turned(k), row(v), o).view(v.sizes());
}

MechanismState CosineMechanism::empty_state(std::int64_t batch, const at::TensorOptions& like) const {
  const std::int64_t features = (config_.theta_learned ? 2 : 1) * shape_.query_dim();
  const AttentionState state = AttentionState::empty(batch, shape_.heads, features, shape_.dim, like);
  return {{state.kv, state.z}};
}

at::Tensor CosineMechanism::forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           MechanismState& state, const StreamClock& clock) {
  AttentionState carried{state.tensors.at(0), state.tensors.at(1), clock.position()};
  const at::Tensor places = config_.theta_learned ? clock.positions(q.size(1)) : at::Tensor();
  const auto turned = [&](const at::Tensor& x) { return places.defined() ? turned_features(x, places) : x; };
  const at::Tensor out = attention_with_state(turned(q), turned(k), v, carried, stream_options());
  state.tensors = {carried.kv, carried.z};
  return out;
}

at::Tensor CosineMechanism::forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& key_mask) {
  if (config_.decay) {
    throw UserError("settings: attention.decay weighs by distance within a sequence, and cross-attention has two");
  }
  return forward(q, k, v, key_mask);
}

MechanismState CosineMechanism::cross_memory(const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& key_mask) const {
  const FullPrecision full_precision;
  at::Tensor features = full_features(k, at::arange(k.size(1), k.options().dtype(at::kLong)));
  if (key_mask.defined()) features = features * key_mask.unsqueeze(-1).unsqueeze(-1);
  return {{at::einsum("bthf,bthd->bhfd", {features, at_least_float(v)}), features.sum(1)}};
}

at::Tensor CosineMechanism::recall(const at::Tensor& q, const MechanismState& memory, const StreamClock& clock) {
  const FullPrecision full_precision;
  const at::Tensor features = full_features(q, clock.positions(q.size(1)));
  at::Tensor out = at::einsum("bthf,bhfd->bthd", {features, memory.tensors.at(0)});
  if (divides_) {
    out = out / at::einsum("bthf,bhf->bth", {features, memory.tensors.at(1)}).clamp_min(config_.eps).unsqueeze(-1);
  }
  return out.to(q.scalar_type());
}

std::optional<std::int64_t> CosineMechanism::longest_stream() const {
  if (!config_.reweight || config_.theta_spread) return std::nullopt;
  return static_cast<std::int64_t>(config_.horizon);
}

}  // namespace cosformer::nn
