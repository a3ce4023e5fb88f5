// One-vs-each attention against the product of sigmoids, formed as a cube.
#include <cmath>

#include "mechanism_case.h"
#include "nn/mechanisms/softmax/one_vs_each_mechanism.h"

namespace cosformer::nn::testing {
namespace {

// Π_{m ≠ j visible} σ(s_ij − s_im) of all i, j: [B, H, T, T]
at::Tensor bound(const at::Tensor& scores, const at::Tensor& visible) {
  const std::int64_t time = scores.size(-1);
  const at::Tensor factors = (scores.unsqueeze(-1) - scores.unsqueeze(-2)).sigmoid();  // [.., i, j, m]
  const at::Tensor counts = visible.unsqueeze(-2) * (1 - at::eye(time, at::kDouble));
  return at::where(counts > 0, factors, at::ones({}, at::kDouble)).prod(-1);
}

TEST(OneVsEach, IsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const bool causal = seed % 2 == 1;
    const RandomCase c(seed, seed % 4 >= 2);
    SCOPED_TRACE(trace(seed, c, causal));
    const auto mechanism = make<OneVsEachMechanism>(config_of({"model.attention=one_vs_each"}), c.shape(causal));
    at::Tensor visible = at::ones({c.batch, 1, c.time, c.time}, at::kDouble);
    if (c.mask.defined()) visible = visible * c.mask.unsqueeze(1).unsqueeze(1);
    if (causal) visible = visible.tril();
    const at::Tensor weights = bound(products(c.q, c.k) / std::sqrt(static_cast<double>(c.dim)), visible);
    expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), attend(weights, c.v, c.mask, causal, 1e-300), c.mask,
                {c.q, c.k, c.v});
    if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
  }
}

// It bounds softmax from below, and for two keys it is softmax.
TEST(OneVsEach, BoundsSoftmax) {
  at::manual_seed(3);
  const at::Tensor scores = at::randn({1, 1, 5, 9}, at::kDouble);
  // The sum includes j itself, whose term is −log 2.
  const at::Tensor log_bound = one_vs_each_log_bound(scores, {}) + std::log(2.0);
  EXPECT_TRUE((log_bound <= scores.log_softmax(-1) + 1e-12).all().item<bool>());
  const at::Tensor two = scores.narrow(3, 0, 2);
  EXPECT_LT(difference(one_vs_each_log_bound(two, {}) + std::log(2.0), two.log_softmax(-1)), kTolerance);
}

// More rows than are worked on at once.
TEST(OneVsEach, LongRowsAreWorkedOnInParts) {
  at::manual_seed(4);
  const at::Tensor scores = at::randn({1, 2, 3, 700}, at::kDouble).requires_grad_();
  const at::Tensor all = at::ones({1, 2, 3, 700}, at::kDouble);
  const at::Tensor got = one_vs_each_log_bound(scores, {}) + std::log(2.0), wanted = bound(scores, all).log();
  const at::Tensor finite = wanted > -600;  // products that did not underflow
  EXPECT_GT(finite.sum().item<std::int64_t>(), 700);
  EXPECT_LT(difference(got.masked_select(finite), wanted.masked_select(finite)), kTolerance);
}

}  // namespace
}  // namespace cosformer::nn::testing
