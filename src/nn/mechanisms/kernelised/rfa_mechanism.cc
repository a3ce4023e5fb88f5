#include "nn/mechanisms/kernelised/rfa_mechanism.h"

#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "nn/full_precision.h"
#include "nn/mechanisms/kernelised/feature_attention.h"
#include "nn/mechanisms/kernelised/gated_scan.h"

namespace cosformer::nn {
namespace {

// Gates start with windows 1 / (1 − g) spread over the heads, in tokens.
constexpr double kShortestWindow = 4, kLongestWindow = 512;

at::Tensor first_gate_logits(std::int64_t heads) {
  std::vector<float> logits;
  for (std::int64_t head = 0; head < heads; ++head) {
    const double share = heads > 1 ? static_cast<double>(head) / static_cast<double>(heads - 1) : 0.5;
    logits.push_back(
        static_cast<float>(std::log(kShortestWindow * std::pow(kLongestWindow / kShortestWindow, share) - 1)));
  }
  return at::tensor(logits);
}

}  // namespace

RfaMechanism::RfaMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config),
      shape_(shape),
      arc_cosine_(config.variant.starts_with("arc_cosine")),
      gated_(config.variant.ends_with("gated")) {
  if (gated_ && !shape.causal) {
    throw UserError(
        fmt::format("settings: the gate of attention.variant={} forgets what came before, which only a causal model "
                    "has; set attention.variant={}",
                    config.variant, arc_cosine_ ? "arc_cosine" : "gaussian"));
  }
  directions = register_buffer("directions", gaussian_directions(shape.heads, config.features, shape.query_dim()));
  // One-dimensional, as everything that weight decay must not pull to zero.
  sigma = register_parameter("sigma", at::ones({shape.heads * shape.query_dim()}));
  forwards_ = register_buffer("forwards", RedrawSchedule::new_count());
  if (gated_) {
    gate_proj = register_module("gate_proj", torch::nn::Linear(shape.width, shape.heads));
    at::NoGradGuard no_grad;
    gate_proj->bias.copy_(first_gate_logits(shape.heads));
  }
}

// [B, T, H, D] → [B, H, T, features]
at::Tensor RfaMechanism::features(const at::Tensor& x, const at::Tensor& scaled_directions) const {
  const at::Tensor wide = at_least_float(x).transpose(1, 2);
  const at::Tensor unit = wide / wide.norm(2, -1, true).clamp_min(1e-6);
  const at::Tensor u = at::matmul(unit, scaled_directions.transpose(1, 2));
  return (arc_cosine_ ? u.relu() : at::cat({u.sin(), u.cos()}, -1)) / std::sqrt(static_cast<double>(config_.features));
}

at::Tensor RfaMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const at::Tensor& key_mask) {
  TORCH_CHECK(!gated_, "rfa: the gated variants read the block's input; call forward_with_input");
  return forward_with_input({}, q, k, v, key_mask);
}

at::Tensor RfaMechanism::forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const at::Tensor& key_mask) {
  if (is_training() && schedule_.is_due(forwards_, config_.redraw)) {
    at::NoGradGuard no_grad;
    directions.copy_(gaussian_directions(shape_.heads, config_.features, shape_.query_dim()));
  }
  at::Tensor query_features, key_features;
  {
    const FullPrecision full_precision;
    // A copy where it may change before the backward pass.
    const at::Tensor drawn = config_.redraw > 0 ? directions.clone() : directions;
    const at::Tensor w =
        (drawn * sigma.view({shape_.heads, 1, shape_.query_dim()})).to(at_least_float(q).scalar_type());
    query_features = features(q, w);
    key_features = features(k, w);
    if (gated_) {
      const at::Tensor logits = at::linear(at_least_float(x), gate_proj->weight.to(query_features.scalar_type()),
                                           gate_proj->bias.to(query_features.scalar_type()));
      return gated_scan(query_features, key_features, at_least_float(v).transpose(1, 2), logits.transpose(1, 2),
                        key_mask, config_.eps)
          .transpose(1, 2)
          .to(v.scalar_type());
    }
  }
  if (key_mask.defined()) key_features = key_features * key_mask.unsqueeze(1).unsqueeze(-1);
  return feature_attention(query_features.transpose(1, 2), key_features.transpose(1, 2), v, shape_.causal, config_.eps);
}

}  // namespace cosformer::nn
