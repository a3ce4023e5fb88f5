// Random feature attention against its kernels written out, and the gated variant against its recurrence.
#include <cmath>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/kernelised/rfa_mechanism.h"

namespace cosformer::nn::testing {
namespace {

at::Tensor unit(const at::Tensor& x) {
  return x / x.square().sum(-1, true).sqrt();
}

at::Tensor projected(const RfaMechanism& m, const at::Tensor& x) {
  const at::Tensor w = m.directions * m.sigma.view({x.size(2), 1, x.size(3)});
  return at::einsum("bthd,hmd->bthm", {unit(x), w});
}

// Gaussian: (1/M) Σ cos(w·(x − y)), which is what the products of sines and cosines come to.
at::Tensor kernel(const RfaMechanism& m, bool arc_cosine, const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor a = projected(m, q).transpose(1, 2).unsqueeze(3), b = projected(m, k).transpose(1, 2).unsqueeze(2);
  return (arc_cosine ? a.relu() * b.relu() : (a - b).cos()).mean(-1);
}

TEST(Rfa, IsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const bool causal = seed % 2 == 1, arc_cosine = seed % 3 == 1;
    const RandomCase c(seed, seed % 4 >= 2, 40, 2);  // numbers of length one have no gradient
    SCOPED_TRACE(trace(seed, c, causal));
    const auto config = config_of({"model.attention=rfa", "attention.redraw=0",
                                   std::string("attention.features=") + (seed % 5 == 0 ? "140" : "16"),
                                   std::string("attention.variant=") + (arc_cosine ? "arc_cosine" : "gaussian")});
    const auto mechanism = make<RfaMechanism>(config, c.shape(causal));
    const at::Tensor out = mechanism->forward(c.q, c.k, c.v, c.mask);
    const at::Tensor expected = attend(kernel(*mechanism, arc_cosine, c.q, c.k), c.v, c.mask, causal, config.eps);
    expect_same(out, expected, c.mask, {c.q, c.k, c.v, mechanism->sigma});
    if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
  }
}

TEST(Rfa, GaussianFeaturesEstimateTheGaussianKernel) {
  at::manual_seed(5);
  const auto config = config_of({"model.attention=rfa", "attention.features=20000"});
  const auto mechanism = make<RfaMechanism>(config, {1, 4, 16, false});
  const auto input = [] { return at::randn({1, 16, 1, 4}, at::kDouble); };
  const at::Tensor q = input(), k = input();
  const at::Tensor exact = (products(unit(q), unit(k)) - 1).exp();  // exp(−|x − y|²/2) of unit vectors
  EXPECT_LT((kernel(*mechanism, false, q, k) - exact).abs().max().item<double>(), 0.05);
}

// S ← g S + (1 − g) φ(k) vᵀ, z alike, one token after the other; absent tokens do not happen.
TEST(Rfa, TheGatedVariantIsItsRecurrence) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const bool arc_cosine = seed % 2 == 1;
    const RandomCase c(seed, seed % 3 == 1, 150, 2);  // chunks are of 64
    SCOPED_TRACE(trace(seed, c, true));
    const auto config =
        config_of({"model.attention=rfa", "attention.features=6", "attention.redraw=0", "attention.eps=1e-3",
                   std::string("attention.variant=") + (arc_cosine ? "arc_cosine_gated" : "gaussian_gated")},
                  true);
    AttentionShape shape = c.shape(true);
    shape.width = 5;
    const auto mechanism = make<RfaMechanism>(config, shape);
    const at::Tensor x = at::randn({c.batch, c.time, 5}, at::kDouble).requires_grad_();
    at::Tensor mask = c.mask;
    if (mask.defined() && seed > 5) mask = at::rand({c.batch, c.time}).gt(0.3);  // holes as well
    const at::Tensor out = mechanism->forward_with_input(x, c.q, c.k, c.v, mask);

    const auto features = [&](const at::Tensor& y) {
      const at::Tensor u = projected(*mechanism, y);
      return (arc_cosine ? u.relu() : at::cat({u.sin(), u.cos()}, -1)) / std::sqrt(6.0);
    };
    const at::Tensor fq = features(c.q), fk = features(c.k);
    const at::Tensor gates =
        (at::matmul(x, mechanism->gate_proj->weight.t()) + mechanism->gate_proj->bias).sigmoid();  // [B, T, H]
    at::Tensor s = at::zeros({c.batch, c.heads, fk.size(3), c.dim}, at::kDouble), z = s.select(3, 0);
    std::vector<at::Tensor> outs;
    for (std::int64_t t = 0; t < c.time; ++t) {
      const at::Tensor here =
          mask.defined() ? mask.select(1, t).to(at::kDouble).unsqueeze(1) : at::ones({1, 1}, at::kDouble);
      const at::Tensor g = (1 - here * (1 - gates.select(1, t))).unsqueeze(-1);  // [B, H, 1]
      const at::Tensor key = (1 - g) * fk.select(1, t);
      s = g.unsqueeze(-1) * s + key.unsqueeze(-1) * c.v.select(1, t).unsqueeze(-2);
      z = g * z + key;
      const at::Tensor query = fq.select(1, t);
      outs.push_back((query.unsqueeze(-1) * s).sum(-2) / (query * z).sum(-1, true).clamp_min(config.eps));
    }
    expect_same(out, at::stack(outs, 1), mask,
                {c.q, c.k, c.v, x, mechanism->sigma, mechanism->gate_proj->weight, mechanism->gate_proj->bias});
  }
}

TEST(Rfa, TheGateNeedsACausalModel) {
  const auto config = config_of({"model.attention=rfa", "attention.variant=gaussian_gated"});
  EXPECT_THROW(make_mechanism(config, {2, 4, 9, false, 8}), UserError);
  const at::Tensor x = at::randn({1, 9, 2, 4});
  EXPECT_ANY_THROW(make_mechanism(config, {2, 4, 9, true, 8})->forward(x, x, x, {}));
}

}  // namespace
}  // namespace cosformer::nn::testing
