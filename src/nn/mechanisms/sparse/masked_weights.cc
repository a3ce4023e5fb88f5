#include "nn/mechanisms/sparse/masked_weights.h"

#include <ATen/ATen.h>

namespace cosformer::nn {

at::Tensor visible_pairs(const at::Tensor& key_mask, std::int64_t time, bool causal, const at::Tensor& like) {
  at::Tensor visible;
  if (key_mask.defined()) visible = key_mask.unsqueeze(1).unsqueeze(1);
  if (causal) {
    const at::Tensor earlier = at::ones({time, time}, like.options().dtype(at::kBool)).tril().unsqueeze(0).unsqueeze(0);
    visible = visible.defined() ? visible.logical_and(earlier) : earlier;
  }
  return visible;
}

at::Tensor visible_softmax(const at::Tensor& scores, const at::Tensor& visible) {
  if (!visible.defined()) return at::softmax(scores, -1);
  // Not −∞: rows of absent tokens would become NaN, and spread. Far below any score its exponential is as much zero.
  const double hidden = scores.scalar_type() == at::kHalf ? -6e4 : -1e30;
  return at::softmax(scores.masked_fill(visible.logical_not(), hidden), -1);
}

}  // namespace cosformer::nn
