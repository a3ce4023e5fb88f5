#include "nn/mechanisms/kernelised/feature_attention.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "cosformer/attention.h"
#include "kernels/attention.h"

namespace cosformer::nn {

at::Tensor feature_attention(const at::Tensor& query_features, const at::Tensor& key_features, const at::Tensor& v,
                             bool causal, double eps) {
  AttentionOptions o;
  o.causal = causal;
  o.feature_map = "identity";
  o.reweight = false;
  o.eps = eps;
  const at::Tensor q = query_features.to(v.scalar_type()), k = key_features.to(v.scalar_type());
  const std::int64_t count = q.size(3), dim = v.size(3);
  if (count <= kernels::kMaxHeadDim) return attention(q, k, v, o);
  // Numerator and divisor are sums over features: the divisor is the part's output for values of one.
  o.normalizer = "none";
  const at::Tensor ones = at::ones({v.size(0), v.size(1), v.size(2), 1}, v.options());
  at::Tensor numerator, divisor;
  for (std::int64_t begin = 0; begin < count; begin += kernels::kMaxHeadDim) {
    const std::int64_t size = std::min(count - begin, kernels::kMaxHeadDim);
    const at::Tensor a = q.narrow(3, begin, size), b = k.narrow(3, begin, size);
    const at::Tensor part = attention(a, b, v, o), sum = attention(a, b, ones, o);
    numerator = numerator.defined() ? numerator + part : part;
    divisor = divisor.defined() ? divisor + sum : sum;
  }
  return (numerator / divisor.clamp_min(eps)).view({v.size(0), q.size(1), v.size(2), dim});
}

}  // namespace cosformer::nn
