// The weights that a mechanism is asked for are those of its definition, and explain its output.
#include "nn/mechanisms/attention_weights.h"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "nn/multi_head_attention.h"

namespace cosformer::nn {
namespace {

constexpr std::int64_t kTime = 23, kHeads = 3, kDim = 5;  // slices of five do not divide 23
constexpr double kHorizon = 40;

AttentionConfig config_of(const std::string& name) {
  AttentionConfig config;
  Settings settings;
  add_settings(settings, config);
  settings.set("model.attention", name, "test");
  apply_preset(config, settings, false);
  if (name == "cosformer") config.horizon = kHorizon;
  return config;
}

// The explicit definition: [B, H, T, T], rows that sum to one.
at::Tensor defined_weights(const std::string& name, const at::Tensor& q, const at::Tensor& k, const at::Tensor& mask,
                           bool causal) {
  const auto products = [](const at::Tensor& a, const at::Tensor& b) {
    return at::matmul(a.transpose(1, 2), b.transpose(1, 2).transpose(-2, -1));
  };
  const at::Tensor t = at::arange(kTime, at::kDouble);
  at::Tensor w = name == "softmax" ? (products(q, k) / std::sqrt(static_cast<double>(kDim))).exp()
                                   : products(q.relu(), k.relu()) *
                                         ((t.unsqueeze(1) - t.unsqueeze(0)) * std::numbers::pi / (2 * kHorizon)).cos();
  w = w * mask.unsqueeze(1).unsqueeze(1);
  if (causal) w = w * at::ones({kTime, kTime}, at::kDouble).tril();
  return w / w.sum(-1, true).clamp_min(1e-6);
}

TEST(AttentionWeights, AreTheDefinition) {
  at::manual_seed(5);
  for (const char* name : {"cosformer", "softmax"}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::string(name) + (causal ? " causal" : " full"));
      const auto mechanism = make_mechanism(config_of(name), {kHeads, kDim, kTime, causal});
      mechanism->eval();
      const auto input = [] { return at::randn({2, kTime, kHeads, kDim}, at::kDouble); };
      const at::Tensor q = input(), k = input();
      at::Tensor mask = at::ones({2, kTime}, at::kBool);
      mask[1].narrow(0, 15, 8).fill_(false);
      const at::Tensor weights = attention_weights(*mechanism, {}, q, k, kDim, mask);
      const at::Tensor expected = defined_weights(name, q, k, mask, causal);
      ASSERT_EQ(weights.sizes(), expected.sizes());
      EXPECT_LT((weights - expected).abs().max().item<double>(), 1e-12);
      EXPECT_EQ(weights[1].narrow(-1, 15, 8).abs().max().item<double>(), 0);
    }
  }
}

TEST(WeightRecorder, ExplainsTheOutputOfEveryMechanismAndChangesNothing) {
  for (const std::string& name : attention_names()) {
    SCOPED_TRACE(name);
    at::manual_seed(6);
    AttentionConfig config = config_of(name);
    if (name == "longformer") config.global = 0;  // its global tokens read values of their own, not v
    MultiHeadAttention attention({16, {2, 8, 32, false, 16}, true, false}, config);
    attention.eval();
    const at::NoGradGuard no_grad;
    const at::Tensor x = at::randn({1, 32, 16});
    at::manual_seed(1);
    const at::Tensor before = attention.forward(x, {});
    const auto recorder = std::make_shared<WeightRecorder>(attention.mechanism);
    attention.mechanism = recorder;
    const at::Tensor after = attention.forward(x, {});
    EXPECT_TRUE(at::equal(before, after));
    EXPECT_EQ(recorder->weights().sizes(), (at::IntArrayRef{1, 2, 32, 32}));
    EXPECT_LT(recorder->deviation(), 1e-5);
  }
}

TEST(WeightRecorder, SeesWeightsThatDoNotExplainTheOutput) {
  class Squares : public Mechanism {
   public:
    at::Tensor forward(const at::Tensor&, const at::Tensor&, const at::Tensor& v, const at::Tensor&) override {
      return v.square();
    }
  };
  WeightRecorder recorder(std::make_shared<Squares>());
  const at::Tensor x = at::full({1, 6, 1, 4}, 3.0);
  recorder.forward(x, x, x, {});
  EXPECT_GT(recorder.deviation(), 0.1);
}

TEST(WeightSummary, OfKnownMatrices) {
  const WeightSummary self = summarize_weights(at::eye(40));
  EXPECT_EQ(self.negative_share, 0);
  EXPECT_EQ(self.mean_distance, 0);
  EXPECT_EQ(self.near_share, 1);
  EXPECT_NEAR(self.entropy, 0, 1e-12);

  const WeightSummary uniform = summarize_weights(at::ones({3, 3}) / 3);
  EXPECT_NEAR(uniform.mean_distance, (3 + 2 + 3) / 9.0, 1e-12);
  EXPECT_NEAR(uniform.entropy, std::log(3.0), 1e-12);

  // One query that looks 20 tokens away, three times as much as at itself, and subtracts there.
  at::Tensor far = at::eye(21);
  far[0][20] = -3;
  const WeightSummary mixed = summarize_weights(far);
  EXPECT_NEAR(mixed.negative_share, 1.0 / 22, 1e-12);
  EXPECT_NEAR(mixed.mean_distance, 0.75 * 20 / 21, 1e-12);
  EXPECT_NEAR(mixed.near_share, (20 + 0.25) / 21, 1e-12);
}

}  // namespace
}  // namespace cosformer::nn
