// The convolution and its gradients against the sum that defines it.
#include "nn/short_convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cosformer::nn {
namespace {

// y[b, t, c] = Σ_j w[j, c] x[b, t + j − before, c], element by element through autograd.
at::Tensor by_definition(const at::Tensor& x, const at::Tensor& w, std::int64_t before) {
  std::vector<at::Tensor> rows;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    at::Tensor row = at::zeros({x.size(0), x.size(2)}, x.options());
    for (std::int64_t j = 0; j < w.size(0); ++j) {
      const std::int64_t from = t + j - before;
      if (from >= 0 && from < x.size(1)) row = row + w[j] * x.select(1, from);
    }
    rows.push_back(row);
  }
  return at::stack(rows, 1);
}

TEST(ShortConvolution, IsItsDefinitionWithGradients) {
  at::manual_seed(3);
  for (const bool causal : {false, true}) {
    for (const std::int64_t width : {1, 2, 4, 5, 9}) {
      for (const std::int64_t time : {1, 3, 17}) {
        SCOPED_TRACE(testing::Message() << "causal " << causal << " width " << width << " time " << time);
        ShortConvolution convolution(6, width, causal);
        convolution.to(at::kDouble);
        const at::Tensor x = at::randn({2, time, 6}, at::kDouble).requires_grad_();
        const at::Tensor weight = convolution.weight.detach().clone().requires_grad_();
        const at::Tensor x2 = x.detach().clone().requires_grad_();
        const at::Tensor y = convolution.forward(x);
        const at::Tensor expected = by_definition(x2, weight, causal ? width - 1 : width / 2);
        EXPECT_LT((y - expected).abs().max().item<double>(), 1e-12);
        const at::Tensor dy = at::randn_like(y);
        y.backward(dy);
        expected.backward(dy);
        EXPECT_LT((x.grad() - x2.grad()).abs().max().item<double>(), 1e-12);
        EXPECT_LT((convolution.weight.grad() - weight.grad()).abs().max().item<double>(), 1e-12);
      }
    }
  }
}

TEST(ShortConvolution, CausalSeesNoLaterToken) {
  at::manual_seed(4);
  ShortConvolution convolution(3, 4, true);
  const at::Tensor x = at::randn({1, 10, 3});
  at::Tensor changed = x.clone();
  changed.select(1, 6).add_(1);
  const at::Tensor a = convolution.forward(x), b = convolution.forward(changed);
  EXPECT_TRUE(at::equal(a.narrow(1, 0, 6), b.narrow(1, 0, 6)));
  EXPECT_FALSE(at::equal(a.select(1, 6), b.select(1, 6)));
}

}  // namespace
}  // namespace cosformer::nn
