#include "nn/mechanisms/low_rank/linformer_mechanism.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace cosformer::nn {

LinformerMechanism::LinformerMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  const std::int64_t rank = std::min(config.rank, shape.max_length);
  // Of this size a projected key is about as long as a key.
  const double deviation = 1 / std::sqrt(static_cast<double>(shape.max_length));
  length_proj = register_parameter("length_proj", at::empty({rank, shape.max_length}).normal_(0, deviation));
}

at::Tensor LinformerMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const at::Tensor& key_mask) {
  const std::int64_t time = k.size(1), heads = shape_.heads, dim = shape_.dim;
  TORCH_CHECK_VALUE(time <= shape_.max_length, "linformer: made for ", shape_.max_length, " tokens; got ", time);
  at::Tensor proj = length_proj.narrow(1, 0, time).unsqueeze(0).to(q.scalar_type());  // [1 or B, rank, T]
  if (key_mask.defined()) proj = proj * key_mask.unsqueeze(1);
  const auto shortened = [&](const at::Tensor& x) {  // → [B, H, rank, D]
    return at::matmul(proj, x.reshape({x.size(0), time, heads * dim}))
        .view({x.size(0), proj.size(1), heads, dim})
        .transpose(1, 2);
  };
  const at::Tensor keys = shortened(k), values = shortened(v);
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  at::Tensor weights = at::softmax(at::matmul(q.transpose(1, 2) * scale, keys.transpose(-2, -1)), -1);
  if (config_.dropout > 0) weights = at::dropout(weights, config_.dropout, is_training());
  return at::matmul(weights, values.to(weights.scalar_type())).transpose(1, 2).to(v.scalar_type());
}

}  // namespace cosformer::nn
