// The settings in which the paper's method is taken apart, against their formulas.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/kernelised/cosine_mechanism.h"
#include "nn/mechanisms/softmax/softmax_mechanism.h"

namespace cosformer::nn::testing {
namespace {

at::Tensor distances(std::int64_t time) {
  const at::Tensor t = at::arange(time, at::kDouble);
  return t.unsqueeze(1) - t.unsqueeze(0);
}

at::Tensor similarity(const std::string& feature_map, const at::Tensor& q, const at::Tensor& k) {
  const auto phi = [&](const at::Tensor& x) -> at::Tensor {
    if (feature_map == "relu") return at::where(x > 0, x, at::zeros_like(x));
    if (feature_map == "leaky_relu") return at::where(x > 0, x, 0.01 * x);
    if (feature_map == "elu1") return at::where(x > 0, x + 1, x.exp());
    if (feature_map == "silu") return x * x.sigmoid();
    return x;
  };
  if (feature_map == "softmax") return (products(q, k) / std::sqrt(static_cast<double>(q.size(3)))).exp();
  return products(phi(q), phi(k));
}

TEST(CosineAblation, EverySimilarityWithAndWithoutReweighting) {
  std::uint64_t seed = 0;
  for (const char* feature_map : {"relu", "leaky_relu", "identity", "elu1", "silu", "softmax"}) {
    for (const bool reweight : {true, false}) {
      for (const bool causal : {true, false}) {
        ++seed;
        const RandomCase c(seed, seed % 2 == 0);
        SCOPED_TRACE(std::string(feature_map) + (reweight ? ", reweight, " : ", ") + trace(seed, c, causal));
        // Where weights have both signs, a small divisor would make every error great. The exponential's common factor,
        // which is taken out before the division, must not meet a clamp.
        const char* eps = std::string(feature_map) == "softmax" ? "1e-30" : "0.5";
        const auto config = config_of({"model.attention=cosformer", std::string("attention.feature_map=") + feature_map,
                                       std::string("attention.reweight=") + (reweight ? "true" : "false"),
                                       std::string("attention.eps=") + eps, "attention.horizon=50"});
        const auto mechanism = make<Mechanism>(config, c.shape(causal));
        at::Tensor weights = similarity(feature_map, c.q, c.k);
        if (reweight) weights = weights * (distances(c.time) * (std::numbers::pi / 100)).cos();
        expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), attend(weights, c.v, c.mask, causal, config.eps), c.mask,
                    {c.q, c.k, c.v});
        if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
      }
    }
  }
}

TEST(CosineAblation, SoftmaxWithoutReweightingIsSoftmax) {
  const RandomCase c(31, true);
  for (const bool causal : {true, false}) {
    const auto ours = make<Mechanism>(
        config_of({"model.attention=cosformer", "attention.feature_map=softmax", "attention.reweight=false"}),
        c.shape(causal));
    const auto softmax = make<SoftmaxMechanism>(config_of({"model.attention=softmax"}), c.shape(causal));
    EXPECT_LT(difference(ours->forward(c.q, c.k, c.v, c.mask), softmax->forward(c.q, c.k, c.v, c.mask)), kTolerance);
  }
}

TEST(CosineAblation, NoNormalizer) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const RandomCase c(seed, seed >= 2);
    SCOPED_TRACE(trace(seed, c, false));
    const auto mechanism = make<CosineMechanism>(
        config_of({"model.attention=cosformer_plus", "attention.normalizer=none", "attention.horizon=60"}),
        c.shape(false));
    const at::Tensor weights = similarity("relu", c.q, c.k) * (distances(c.time) * (std::numbers::pi / 120)).cos();
    expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), attend(weights, c.v, c.mask, false, 0), c.mask,
                {c.q, c.k, c.v});
  }
}

TEST(CosineAblation, LearnedAnglesAreDifferentiable) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const bool causal = seed % 2 == 1, head_norm = seed % 4 >= 2, decay = seed % 3 == 1, spread = head_norm && seed > 8;
    const RandomCase c(seed, seed % 5 >= 3);
    SCOPED_TRACE(trace(seed, c, causal));
    const auto flag = [](const char* key, bool on) { return std::string(key) + (on ? "=true" : "=false"); };
    const auto config = config_of({"model.attention=cosformer_plus", "attention.theta_learned=true",
                                   "attention.horizon=45", flag("attention.head_norm", head_norm),
                                   flag("attention.decay", decay), flag("attention.theta_spread", spread)});
    const auto mechanism = make<CosineMechanism>(config, c.shape(causal));
    {
      at::NoGradGuard no_grad;
      mechanism->angle.add_(at::randn({c.heads}, at::kDouble) * 0.3);
    }
    const at::Tensor theta = mechanism->learned_theta().view({c.heads, 1, 1});
    if (!head_norm) {
      EXPECT_LE(theta.max().item<double>(), std::numbers::pi / 90);
    }
    at::Tensor weights = similarity("relu", c.q, c.k) * (distances(c.time) * theta).cos();
    std::vector<at::Tensor> inputs{c.q, c.k, c.v, mechanism->angle};
    if (decay) {
      weights = weights * (distances(c.time).abs() * mechanism->log_decay().view({c.heads, 1, 1})).exp();
      inputs.push_back(mechanism->log_rate);
    }
    expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), attend(weights, c.v, c.mask, causal, head_norm ? 0 : 1e-6),
                c.mask, inputs);
  }
}

TEST(CosineAblation, StartsWhereThePaperIs) {
  // Free angles begin as the paper's; bounded ones at 0.95 of them.
  const auto free = make<CosineMechanism>(
      config_of({"model.attention=cosformer_plus", "attention.theta_learned=true", "attention.head_norm=true"}),
      {2, 4, 100});
  EXPECT_NEAR(free->learned_theta().max().item<double>(), std::numbers::pi / 200, 1e-9);
  const auto bounded =
      make<CosineMechanism>(config_of({"model.attention=cosformer_plus", "attention.theta_learned=true"}), {2, 4, 100});
  EXPECT_NEAR(bounded->learned_theta().max().item<double>() / (std::numbers::pi / 200), 0.953, 0.001);
}

TEST(CosineAblation, RefusesWhatDoesNotGoTogether) {
  const auto refuses = [](std::vector<std::string> assignments, const AttentionShape& shape = {2, 4, 20}) {
    EXPECT_THROW(make_mechanism(config_of(assignments), shape), UserError) << ::testing::PrintToString(assignments);
  };
  refuses({"model.attention=cosformer", "attention.theta_learned=true"});
  refuses({"model.attention=cosformer", "attention.normalizer=none"});
  refuses({"model.attention=cosformer_plus", "attention.theta_learned=true", "attention.reweight=false"});
  refuses({"model.attention=cosformer_plus", "attention.feature_map=softmax", "attention.decay=true"});
  refuses({"model.attention=cosformer_plus", "attention.feature_map=softmax", "attention.normalizer=none"});
  refuses({"model.attention=linear", "attention.feature_map=softmax"});
  refuses({"model.attention=cosformer", "attention.feature_map=softmax", "attention.horizon=10"});
  refuses({"model.attention=cosformer_plus", "attention.theta_learned=true"}, {2, 129, 20});
  refuses({"model.attention=cosformer"}, {2, 257, 20});
}

}  // namespace
}  // namespace cosformer::nn::testing
