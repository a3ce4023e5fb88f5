#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

#include "nn/mechanisms/kernelised/cosine_mechanism.h"
#include "nn/mechanisms/sparse/masked_weights.h"
#include "nn/positions/horizon.h"

namespace cosformer::nn {

CosineSoftmaxMechanism::CosineSoftmaxMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  config_.horizon = checked_horizon(config, shape);
}

at::Tensor CosineSoftmaxMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const at::Tensor& key_mask) {
  const double scale = 1 / std::sqrt(static_cast<double>(shape_.dim));
  const at::Tensor scores = at::matmul(q.transpose(1, 2) * scale, k.transpose(1, 2).transpose(-2, -1));
  // The common factor that softmax takes out of a row cancels in the division below.
  at::Tensor weights = visible_softmax(scores, visible_pairs(key_mask, k.size(1), shape_.causal, k));
  if (config_.reweight) {
    const auto options = q.options().dtype(at::kDouble);
    const at::Tensor at_query = at::arange(q.size(1), options), at_key = at::arange(k.size(1), options);
    const at::Tensor distance = at_query.unsqueeze(1) - at_key.unsqueeze(0);
    weights = weights * (distance * (std::numbers::pi / (2 * config_.horizon))).cos().to(weights.scalar_type());
    weights = weights / weights.sum(-1, true).clamp_min(config_.eps);
  }
  return at::matmul(weights, v.transpose(1, 2).to(weights.scalar_type())).transpose(1, 2).to(v.scalar_type());
}

}  // namespace cosformer::nn
