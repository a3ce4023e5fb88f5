#include "nn/cosine_mechanism.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "cosformer/attention.h"
#include "kernels/attention.h"
#include "nn/full_precision.h"
#include "nn/horizon.h"

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
  return x;
}

}  // namespace

CosineMechanism::CosineMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape), divides_(config.normalizer == "sum" && !config.head_norm) {
  config_.horizon = checked_horizon(config, shape);
  // Learned angles are part of the features, of which there are then twice as many.
  const std::int64_t most = config.theta_learned ? kernels::kMaxHeadDim / 2 : kernels::kMaxHeadDim;
  if (std::max(shape.dim, shape.query_dim()) > most) {
    throw UserError("settings: attention \"" + config.name + "\" takes heads of at most " + std::to_string(most) +
                    " dimensions" + (config.theta_learned ? " with attention.theta_learned" : "") + "; got " +
                    std::to_string(std::max(shape.dim, shape.query_dim())));
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
  return log_rate.defined() ? log_rate.clamp_max(10).exp().neg() : at::Tensor();
}

at::Tensor CosineMechanism::learned_theta() const {
  const double paper = std::numbers::pi / (2 * config_.horizon);
  if (divides_) return angle.sigmoid() * paper;
  return theta.defined() ? angle * theta : angle * paper;
}

// cos(a − b) = cos a cos b + sin a sin b, written out, because the operator does not differentiate its angles.
at::Tensor CosineMechanism::forward_with_learned_angles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                        const at::Tensor& key_mask) const {
  const auto features = [&](const at::Tensor& x) {
    const at::Tensor places = at::arange(x.size(1), x.options().dtype(at::kDouble)).unsqueeze(1);
    const at::Tensor angles = (places * learned_theta().to(at::kDouble)).unsqueeze(-1);  // [T, H, 1]
    const at::Tensor y = mapped(config_.feature_map, at_least_float(x));
    return at::cat({y * angles.cos().to(y.scalar_type()), y * angles.sin().to(y.scalar_type())}, -1)
        .to(v.scalar_type());
  };
  AttentionOptions o;
  o.causal = shape_.causal;
  o.log_decay = log_decay();
  o.feature_map = "identity";
  o.reweight = false;
  o.normalizer = divides_ ? "sum" : "none";
  o.eps = config_.eps;
  o.key_mask = key_mask;
  return attention(features(q), features(k), v, o);
}

at::Tensor CosineMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_mask) {
  if (config_.theta_learned) return forward_with_learned_angles(q, k, v, key_mask);
  AttentionOptions o;
  o.causal = shape_.causal;
  if (!config_.theta_spread) o.horizon = config_.horizon;
  o.theta = theta;
  o.log_decay = log_decay();
  o.feature_map = config_.feature_map;
  o.reweight = config_.reweight;
  o.normalizer = divides_ ? "sum" : "none";
  o.eps = config_.eps;
  o.key_mask = key_mask;
  return attention(q, k, v, o);
}

}  // namespace cosformer::nn
