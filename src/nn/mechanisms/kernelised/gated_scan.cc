#include "nn/mechanisms/kernelised/gated_scan.h"

#include <limits>
#include <vector>

#include <ATen/ATen.h>

namespace cosformer::nn {
namespace {

constexpr std::int64_t kChunk = 64;

// [B, H, T, …] → [B, H, N, kChunk, …], with zeros at the end.
at::Tensor chunked(const at::Tensor& x, std::int64_t chunks) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[2] = chunks * kChunk - x.size(2);
  const at::Tensor padded = shape[2] > 0 ? at::cat({x, at::zeros(shape, x.options())}, 2) : x;
  shape[2] = chunks;
  shape.insert(shape.begin() + 3, kChunk);
  return padded.reshape(shape);
}

}  // namespace

at::Tensor gated_scan(const at::Tensor& query_features, const at::Tensor& key_features, const at::Tensor& v,
                      const at::Tensor& gate_logits, const at::Tensor& present, double eps) {
  const std::int64_t time = v.size(2), dim = v.size(3), chunks = (time + kChunk - 1) / kChunk;
  at::Tensor log_gate = at::log_sigmoid(gate_logits), share = at::sigmoid(-gate_logits);
  if (present.defined()) {
    const at::Tensor is_there = present.unsqueeze(1).to(share.scalar_type());
    log_gate = log_gate * is_there;
    share = share * is_there;
  }
  const at::Tensor ones = at::ones({v.size(0), v.size(1), time, 1}, v.options());
  const at::Tensor q = chunked(query_features, chunks), k = chunked(key_features, chunks);
  const at::Tensor values = chunked(at::cat({v, ones}, -1), chunks);  // the divisor is one more column
  const at::Tensor since_begin = chunked(log_gate, chunks).cumsum(-1), weight = chunked(share, chunks);

  // Inside a chunk: Π of the gates after j up to i, times the share of j.
  const at::Tensor later = at::ones({kChunk, kChunk}, v.options().dtype(at::kBool)).triu(1);
  const at::Tensor decay = (since_begin.unsqueeze(-1) - since_begin.unsqueeze(-2))
                               .masked_fill(later, -std::numeric_limits<double>::infinity())
                               .exp();
  const at::Tensor inside = at::matmul(at::matmul(q, k.transpose(-2, -1)) * decay * weight.unsqueeze(-2), values);

  // Between chunks.
  const at::Tensor whole = since_begin.select(-1, kChunk - 1);                                // [B, H, N]
  const at::Tensor to_end = (whole.unsqueeze(-1) - since_begin).exp() * weight;               // [B, H, N, kChunk]
  const at::Tensor added = at::matmul((k * to_end.unsqueeze(-1)).transpose(-2, -1), values);  // [B, H, N, M, D + 1]
  const at::Tensor kept = whole.exp().unsqueeze(-1).unsqueeze(-1);
  std::vector<at::Tensor> states{at::zeros_like(added.select(2, 0))};
  for (std::int64_t n = 0; n + 1 < chunks; ++n) {
    states.push_back(kept.select(2, n) * states.back() + added.select(2, n));
  }
  const at::Tensor before = at::matmul(q * since_begin.exp().unsqueeze(-1), at::stack(states, 2));

  const at::Tensor sums =
      (inside + before).reshape({v.size(0), v.size(1), chunks * kChunk, dim + 1}).narrow(2, 0, time);
  return sums.narrow(3, 0, dim) / sums.narrow(3, dim, 1).clamp_min(eps);
}

}  // namespace cosformer::nn
