#include "nn/mechanisms/softmax/one_vs_each_mechanism.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/full_precision.h"
#include "nn/mechanisms/sparse/masked_weights.h"

namespace cosformer::nn {
namespace {

// Numbers in a block of rows × keys × keys: within a core's cache, or enough work for a GPU.
constexpr std::int64_t kBlockOnCpu = 1 << 18, kBlockOnGpu = 1 << 26;

std::int64_t rows_at_once(const at::Tensor& rows) {
  const std::int64_t pairs = std::max<std::int64_t>(rows.size(1) * rows.size(1), 1);
  return std::max<std::int64_t>((rows.is_cuda() ? kBlockOnGpu : kBlockOnCpu) / pairs, 1);
}

// s_m − s_j for a block of rows [R, T] → [R, j, m]
at::Tensor differences(const at::Tensor& block) {
  return block.unsqueeze(1) - block.unsqueeze(2);
}

class LogBound : public torch::autograd::Function<LogBound> {
 public:
  // rows [R, T]; present [R, T] in the rows' dtype, one = visible
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows,
                            const at::Tensor& present) {
    context->save_for_backward({rows, present});
    at::Tensor out = at::empty_like(rows);
    const std::int64_t step = rows_at_once(rows);
    for (std::int64_t begin = 0; begin < rows.size(0); begin += step) {
      const std::int64_t size = std::min(step, rows.size(0) - begin);
      const at::Tensor terms = at::softplus(differences(rows.narrow(0, begin, size)));
      out.narrow(0, begin, size).copy_(at::matmul(terms, present.narrow(0, begin, size).unsqueeze(-1)).squeeze(-1));
    }
    return out.neg_();
  }

  // d out_j / d s_m = −σ(s_m − s_j) for m ≠ j, and d out_j / d s_j = Σ_m σ(s_m − s_j) (the terms m = j cancel).
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &present = saved[1], &g = gradients[0];
    at::Tensor result = at::empty_like(rows);
    const std::int64_t step = rows_at_once(rows);
    for (std::int64_t begin = 0; begin < rows.size(0); begin += step) {
      const std::int64_t size = std::min(step, rows.size(0) - begin);
      const at::Tensor slopes = differences(rows.narrow(0, begin, size)).sigmoid_();  // [R, j, m]
      const at::Tensor seen = present.narrow(0, begin, size), incoming = g.narrow(0, begin, size);
      const at::Tensor as_j = incoming * at::matmul(slopes, seen.unsqueeze(-1)).squeeze(-1);
      const at::Tensor as_m = seen * at::matmul(incoming.unsqueeze(1), slopes).squeeze(1);
      result.narrow(0, begin, size).copy_(as_j - as_m);
    }
    return {result, at::Tensor()};
  }
};

}  // namespace

at::Tensor one_vs_each_log_bound(const at::Tensor& scores, const at::Tensor& visible) {
  const at::Tensor rows = scores.reshape({-1, scores.size(-1)});
  const at::Tensor present = visible.defined()
                                 ? visible.expand(scores.sizes()).reshape(rows.sizes()).to(rows.scalar_type())
                                 : at::ones_like(rows);
  return LogBound::apply(rows, present).view(scores.sizes());
}

at::Tensor OneVsEachMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const at::Tensor& key_mask) {
  const FullPrecision full_precision;  // sums of as many logarithms as there are keys
  const double scale = 1 / std::sqrt(static_cast<double>(shape_.dim));
  const at::Tensor scores =
      at::matmul(at_least_float(q).transpose(1, 2) * scale, at_least_float(k).transpose(1, 2).transpose(-2, -1));
  const at::Tensor visible = visible_pairs(key_mask, k.size(1), shape_.causal, k);
  at::Tensor weights = visible_softmax(one_vs_each_log_bound(scores, visible), visible);
  if (config_.dropout > 0) weights = at::dropout(weights, config_.dropout, is_training());
  return at::matmul(weights, at_least_float(v).transpose(1, 2)).transpose(1, 2).to(v.scalar_type());
}

}  // namespace cosformer::nn
