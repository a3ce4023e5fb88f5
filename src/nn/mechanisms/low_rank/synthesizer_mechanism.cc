#include "nn/mechanisms/low_rank/synthesizer_mechanism.h"

#include <cmath>

#include <ATen/ATen.h>

#include "nn/mechanisms/sparse/masked_weights.h"

namespace cosformer::nn {

SynthesizerMechanism::SynthesizerMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  const std::int64_t length = shape.max_length;
  if (config.variant == "random") {
    scores = register_parameter("scores", at::randn({shape.heads, length, length}));
    return;
  }
  const double bound = 1 / std::sqrt(static_cast<double>(shape.dim));
  row_weight = register_parameter("row_weight", at::empty({shape.heads, shape.dim, length}).uniform_(-bound, bound));
  row_bias = register_parameter("row_bias", at::zeros({shape.heads * length}));
}

at::Tensor SynthesizerMechanism::forward(const at::Tensor& q, const at::Tensor& /*k*/, const at::Tensor& v,
                                         const at::Tensor& key_mask) {
  const std::int64_t time = v.size(1);
  TORCH_CHECK_VALUE(time <= shape_.max_length, "synthesizer: made for ", shape_.max_length, " tokens; got ", time);
  at::Tensor rows;
  if (scores.defined()) {
    rows = scores.narrow(1, 0, time).narrow(2, 0, time).unsqueeze(0).to(v.scalar_type());
  } else {
    const at::Tensor bias = row_bias.view({shape_.heads, 1, shape_.max_length}).narrow(2, 0, time);
    rows = at::matmul(q.transpose(1, 2).relu(), row_weight.narrow(2, 0, time).to(q.scalar_type())) +
           bias.to(q.scalar_type());
  }
  at::Tensor weights = visible_softmax(rows, visible_pairs(key_mask, time, shape_.causal, v));
  if (config_.dropout > 0) weights = at::dropout(weights, config_.dropout, is_training());
  return at::matmul(weights, v.transpose(1, 2).to(weights.scalar_type())).transpose(1, 2).to(v.scalar_type());
}

}  // namespace cosformer::nn
