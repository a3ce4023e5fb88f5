// Performer against the sum over its features written out, and its features against softmax's kernel.
#include <cmath>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/kernelised/performer_mechanism.h"

namespace cosformer::nn::testing {
namespace {

// (1/M) Σ_f exp(w_f·x − |x|²/2) exp(w_f·y − |y|²/2), nothing subtracted for stability
at::Tensor estimated_kernel(const at::Tensor& q, const at::Tensor& k, const at::Tensor& w) {
  const double scale = std::pow(static_cast<double>(q.size(3)), -0.25);
  const auto features = [&](const at::Tensor& x) {
    return (at::einsum("bthd,hmd->bthm", {x * scale, w}) - (x * scale).square().sum(-1, true) / 2).exp();
  };
  return at::einsum("bihm,bjhm->bhij", {features(q), features(k)}) / static_cast<double>(w.size(1));
}

TEST(Performer, IsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const bool causal = seed % 2 == 1;
    const RandomCase c(seed, seed % 4 >= 2);
    SCOPED_TRACE(trace(seed, c, causal));
    const std::string features = std::to_string(std::vector{7, 32, 300}[seed % 3]);  // 300: in two parts
    const auto config =
        config_of({"model.attention=performer", "attention.features=" + features, "attention.eps=1e-20"});
    const auto mechanism = make<PerformerMechanism>(config, c.shape(causal));
    const at::Tensor out = mechanism->forward(c.q, c.k, c.v, c.mask);
    const at::Tensor weights = estimated_kernel(c.q, c.k, mechanism->projection);
    expect_same(out, attend(weights, c.v, c.mask, causal, 1e-300), c.mask, {c.q, c.k, c.v});
    if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
  }
}

TEST(Performer, HugeInputsStayFinite) {
  at::manual_seed(3);
  for (const bool causal : {false, true}) {
    const auto mechanism = make_mechanism(config_of({"model.attention=performer"}), {2, 8, 20, causal});
    const auto input = [] { return at::randn({2, 20, 2, 8}) * 100; };
    EXPECT_TRUE(mechanism->forward(input(), input(), input(), {}).isfinite().all().item<bool>());
    const at::Tensor nothing = at::zeros({2, 20}, at::kBool);
    EXPECT_EQ(mechanism->forward(input(), input(), input(), nothing).abs().max().item<double>(), 0);
  }
}

TEST(Performer, DirectionsAreOrthogonalAndOfRandomLength) {
  at::manual_seed(4);
  const at::Tensor w = orthogonal_directions(3, 20, 8).to(at::kDouble);
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t begin = 0; begin < 20; begin += 8) {
      const at::Tensor rows = w[head].narrow(0, begin, std::min<std::int64_t>(8, 20 - begin));
      const at::Tensor gram = at::matmul(rows, rows.t());
      EXPECT_LT((gram - gram.diag().diag()).abs().max().item<double>(), 1e-5);
    }
  }
  // |w|² is chi-squared with 8 degrees of freedom: mean 8, variance 16.
  const at::Tensor many = orthogonal_directions(1, 4000, 8).to(at::kDouble).square().sum(-1);
  EXPECT_NEAR(many.mean().item<double>(), 8, 0.4);
  EXPECT_NEAR(many.var().item<double>(), 16, 2.5);
}

TEST(Performer, MoreFeaturesComeNearerToSoftmax) {
  at::manual_seed(5);
  const auto input = [] { return at::randn({4, 16, 1, 4}, at::kDouble); };
  const at::Tensor q = input() * 0.7, k = input() * 0.7, v = input();
  const at::Tensor exact = attend((products(q, k) / 2.0).exp(), v, {}, false, 1e-300);
  std::vector<double> errors;
  for (const char* features : {"16", "4096"}) {
    const auto config = config_of({"model.attention=performer", std::string("attention.features=") + features});
    const auto mechanism = make<PerformerMechanism>(config, {1, 4, 16, false});
    errors.push_back((mechanism->forward(q, k, v, {}) - exact).abs().mean().item<double>());
  }
  EXPECT_LT(errors[1], errors[0] / 4);  // sixteenfold is to be expected
  EXPECT_LT(errors[1], 0.02 * exact.abs().max().item<double>());
}

TEST(Performer, RedrawsOnScheduleAndResumesIt) {
  at::manual_seed(6);
  const auto config = config_of({"model.attention=performer", "attention.features=8", "attention.redraw=3"});
  const auto fresh = [&] {
    return std::dynamic_pointer_cast<PerformerMechanism>(make_mechanism(config, {2, 4, 9, true}));
  };
  const auto mechanism = fresh();
  const at::Tensor x = at::randn({1, 9, 2, 4});
  const auto changes = [&](PerformerMechanism& m) {
    const at::Tensor before = m.projection.clone();
    m.forward(x, x, x, {});
    return !before.equal(m.projection);
  };
  std::vector<bool> seen;
  for (int forward = 0; forward < 8; ++forward) seen.push_back(changes(*mechanism));
  EXPECT_EQ(seen, (std::vector<bool>{false, false, false, true, false, false, true, false}));
  // As a checkpoint does it: the buffers of one into another, which has already counted by itself.
  const auto resumed = fresh();
  changes(*resumed);
  const auto from = mechanism->named_buffers(), to = resumed->named_buffers();
  for (const auto& item : from) to[item.key()].copy_(item.value());
  EXPECT_FALSE(changes(*resumed));
  EXPECT_TRUE(changes(*resumed));
  resumed->eval();
  for (int forward = 0; forward < 4; ++forward) EXPECT_FALSE(changes(*resumed));
}

// Two forwards before one backward, as pairs of documents have them.
TEST(Performer, ARedrawDoesNotDisturbAnEarlierForward) {
  at::manual_seed(7);
  const auto config = config_of({"model.attention=performer", "attention.features=8", "attention.redraw=1"});
  const auto mechanism = make_mechanism(config, {2, 4, 9, true});
  const at::Tensor x = at::randn({1, 9, 2, 4}).requires_grad_();
  (mechanism->forward(x, x, x, {}) + mechanism->forward(x, x, x, {})).sum().backward();
  EXPECT_GT(x.grad().abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace cosformer::nn::testing
