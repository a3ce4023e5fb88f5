#include "nn/mechanisms/low_rank/nystromformer_mechanism.h"

#include <cmath>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "nn/full_precision.h"
#include "nn/mechanisms/sparse/masked_weights.h"

namespace cosformer::nn {
namespace {

// [B or 1, M, T]: row s averages the tokens of segment s. The n tokens that are present are numbered, and number r
// belongs to segment ⌊r M / n⌋; with fewer tokens than segments some of these are empty, their rows zero.
at::Tensor segment_means(const at::Tensor& key_mask, std::int64_t time, std::int64_t segments,
                         const at::TensorOptions& options) {
  const auto whole = options.dtype(at::kLong);
  const at::Tensor present = key_mask.defined() ? key_mask.to(at::kLong) : at::ones({1, time}, whole);
  const at::Tensor number = present.cumsum(1) - 1, count = present.sum(1, true).clamp_min(1);
  const at::Tensor segment = at::div(number * segments, count, "floor").unsqueeze(1);
  const at::Tensor members =
      segment.eq(at::arange(segments, whole).view({1, segments, 1})).to(options.dtype()) * present.unsqueeze(1);
  return members / members.sum(-1, true).clamp_min(1);
}

}  // namespace

at::Tensor iterative_inverse(const at::Tensor& a, std::int64_t iterations) {
  const at::Tensor identity = at::eye(a.size(-1), a.options()), size = a.abs();
  const at::Tensor scale = size.sum(-1).amax(-1) * size.sum(-2).amax(-1);
  at::Tensor z = a.transpose(-2, -1) / scale.clamp_min(1e-30).unsqueeze(-1).unsqueeze(-1);
  for (std::int64_t at = 0; at < iterations; ++at) {
    const at::Tensor az = at::matmul(a, z);
    z = at::matmul(z, 13 * identity - at::matmul(az, 15 * identity - at::matmul(az, 7 * identity - az))) * 0.25;
  }
  return z;
}

NystromformerMechanism::NystromformerMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  if (config.value_window == 0) return;
  if (config.value_window % 2 == 0) {
    throw UserError(
        fmt::format("settings: attention.value_window must be odd, to have a middle; got {}", config.value_window));
  }
  const double bound = 1 / std::sqrt(static_cast<double>(config.value_window));
  value_convolution = register_parameter("value_convolution",
                                         at::empty({shape.heads, 1, config.value_window, 1}).uniform_(-bound, bound));
}

at::Tensor NystromformerMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const at::Tensor& key_mask) {
  const double scale = std::pow(static_cast<double>(shape_.dim), -0.25);
  at::Tensor out;
  {
    const FullPrecision full_precision;  // for the inverse; its matrices are small beside the projections
    const at::Tensor queries = at_least_float(q).transpose(1, 2) * scale;
    const at::Tensor keys = at_least_float(k).transpose(1, 2) * scale, values = at_least_float(v).transpose(1, 2);
    const at::Tensor means =
        segment_means(key_mask, k.size(1), config_.landmarks, keys.options()).unsqueeze(1);  // [B or 1, 1, M, T]
    const at::Tensor filled = means.sum(-1) > 0;                                             // [B or 1, 1, M]
    const at::Tensor query_marks = at::matmul(means, queries), key_marks = at::matmul(means, keys).transpose(-2, -1);
    const at::Tensor to_marks = visible_softmax(at::matmul(queries, key_marks), filled.unsqueeze(-2));
    const at::Tensor between =
        visible_softmax(at::matmul(query_marks, key_marks), filled.unsqueeze(-2)) * filled.unsqueeze(-1);
    const at::Tensor from_marks =
        visible_softmax(at::matmul(query_marks, keys.transpose(-2, -1)), visible_pairs(key_mask, k.size(1), false, k));
    out = at::matmul(to_marks,
                     at::matmul(iterative_inverse(between, config_.iterations), at::matmul(from_marks, values)));
  }
  if (value_convolution.defined()) {
    at::Tensor values = v.transpose(1, 2);
    if (key_mask.defined()) values = values * key_mask.unsqueeze(1).unsqueeze(-1);
    out = out + at::conv2d(values, value_convolution.to(values.scalar_type()), {}, 1, {config_.value_window / 2, 0}, 1,
                           shape_.heads);
  }
  return out.transpose(1, 2).to(v.scalar_type());
}

}  // namespace cosformer::nn
