#include "nn/mechanisms/attention_weights.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace cosformer::nn {
namespace {

constexpr std::uint64_t kSeed = 1;  // of what is drawn at random in each pass

at::Tensor seeded_forward(Mechanism& mechanism, const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& key_mask) {
  at::manual_seed(kSeed);
  return mechanism.forward_with_input(x, q, k, v, key_mask);
}

}  // namespace

at::Tensor attention_weights(Mechanism& mechanism, const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                             std::int64_t value_dim, const at::Tensor& key_mask, const WeightsProgress& progress) {
  const at::NoGradGuard no_grad;
  const std::int64_t batch = q.size(0), time = q.size(1), heads = q.size(2), dim = value_dim;
  const at::Tensor identity = at::eye(time, q.options());  // [T, T]
  std::vector<at::Tensor> slices;
  for (std::int64_t first = 0; first < time; first += dim) {
    const std::int64_t count = std::min(dim, time - first);
    at::Tensor v = at::zeros({batch, time, heads, dim}, q.options());
    v.narrow(-1, 0, count).copy_(identity.narrow(1, first, count).view({1, time, 1, count}));
    slices.push_back(seeded_forward(mechanism, x, q, k, v, key_mask).narrow(-1, 0, count));
    if (progress) progress(first + count, time);
  }
  return at::cat(slices, -1).transpose(1, 2).contiguous();  // [B, T, H, T] → [B, H, T, T]
}

at::Tensor WeightRecorder::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const at::Tensor& key_mask) {
  return forward_with_input({}, q, k, v, key_mask);
}

at::Tensor WeightRecorder::forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                              const at::Tensor& v, const at::Tensor& key_mask) {
  if (weights_.defined()) return mechanism_->forward_with_input(x, q, k, v, key_mask);
  const at::Tensor out = seeded_forward(*mechanism_, x, q, k, v, key_mask);
  weights_ = attention_weights(*mechanism_, x, q, k, v.size(3), key_mask, progress_);
  const at::Tensor again = at::matmul(weights_, v.transpose(1, 2).to(weights_.scalar_type())).transpose(1, 2);
  deviation_ = ((again - out).abs().max() / out.abs().max().clamp_min(1e-30)).item<double>();
  return out;
}

WeightSummary summarize_weights(const at::Tensor& weights, std::int64_t near) {
  const at::Tensor w = weights.to(at::kDouble).cpu(), size = w.abs();
  const at::Tensor places = at::arange(w.size(0), at::kDouble);
  const at::Tensor distance = (places.unsqueeze(1) - places.unsqueeze(0)).abs();
  const at::Tensor share = size / size.sum(-1, true).clamp_min(1e-300);  // of each query
  WeightSummary summary;
  const double not_zero = w.ne(0).sum().item<double>();
  summary.negative_share = not_zero > 0 ? w.lt(0).sum().item<double>() / not_zero : 0;
  summary.mean_distance = (share * distance).sum(-1).mean().item<double>();
  summary.near_share = (share * distance.le(static_cast<double>(near)).to(at::kDouble)).sum(-1).mean().item<double>();
  summary.entropy = -(share * share.clamp_min(1e-300).log()).sum(-1).mean().item<double>();
  return summary;
}

}  // namespace cosformer::nn
