#include "nn/cosine_mechanism.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "cosformer/attention.h"
#include "kernels/attention.h"

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

}  // namespace

CosineMechanism::CosineMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  if (config_.horizon == 0) config_.horizon = static_cast<double>(shape.max_length);
  if (config_.horizon < static_cast<double>(shape.max_length)) {
    throw UserError("settings: attention.horizon must not be below the model's greatest length, " +
                    std::to_string(shape.max_length) + " tokens; got " + std::to_string(config_.horizon));
  }
  if (shape.dim > kernels::kMaxHeadDim) {
    throw UserError("settings: heads of at most " + std::to_string(kernels::kMaxHeadDim) + " dimensions; got " +
                    std::to_string(shape.dim));
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
}

at::Tensor CosineMechanism::log_decay() const {
  // Beyond e^10 nothing is left of the next token's weight; an infinite rate would be refused.
  return log_rate.defined() ? log_rate.clamp_max(10).exp().neg() : at::Tensor();
}

at::Tensor CosineMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_mask) {
  AttentionOptions o;
  o.causal = shape_.causal;
  if (!config_.theta_spread) o.horizon = config_.horizon;
  o.theta = theta;
  o.log_decay = log_decay();
  o.feature_map = config_.feature_map;
  o.reweight = config_.reweight;
  o.normalizer = config_.head_norm ? "none" : "sum";
  o.eps = config_.eps;
  o.key_mask = key_mask;
  return attention(q, k, v, o);
}

}  // namespace cosformer::nn
