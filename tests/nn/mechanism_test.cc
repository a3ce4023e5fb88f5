// Each mechanism behind the interface against its formula written out, and what is refused.
#include "nn/mechanisms/mechanism.h"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "nn/mechanisms/attention_options.h"
#include "nn/mechanisms/kernelised/cosine_mechanism.h"
#include "nn/multi_head_attention.h"
#include "nn/positions/positions.h"

namespace cosformer::nn {
namespace {

AttentionConfig config_of(const std::vector<std::string>& assignments) {
  AttentionConfig config;
  Settings settings;
  add_settings(settings, config);
  for (const std::string& assignment : assignments) settings.assign(assignment);
  apply_preset(config, settings, false);
  return config;
}

// Σ_j w_ij v_j / Σ_j w_ij, or without the division, from weights [B, H, T, T].
at::Tensor weighted(at::Tensor weights, const at::Tensor& v, const at::Tensor& mask, bool causal, bool divide) {
  const std::int64_t time = v.size(1);
  if (mask.defined()) weights = weights * mask.unsqueeze(1).unsqueeze(1);
  if (causal) weights = weights * at::ones({time, time}, weights.options()).tril();
  if (divide) weights = weights / weights.sum(-1, true).clamp_min(1e-6);
  return at::matmul(weights, v.transpose(1, 2)).transpose(1, 2);
}

at::Tensor products(const at::Tensor& q, const at::Tensor& k) {
  return at::matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(-2, -1));
}

struct Case {
  std::vector<std::string> assignments;
  std::function<at::Tensor(const CosineMechanism*, const at::Tensor& q, const at::Tensor& k)> weights;
  bool divide = true;
};

constexpr std::int64_t kTime = 23, kHeads = 3, kDim = 5;
constexpr double kHorizon = 40;

at::Tensor distances() {
  const at::Tensor t = at::arange(kTime, at::kDouble);
  return t.unsqueeze(1) - t.unsqueeze(0);
}

std::vector<Case> cases() {
  const auto cosine = [](double theta) { return (distances() * theta).cos(); };
  const double theta = std::numbers::pi / (2 * kHorizon);
  return {
      {{"model.attention=softmax"},
       [](const CosineMechanism*, const at::Tensor& q, const at::Tensor& k) {
         return (products(q, k) / std::sqrt(static_cast<double>(kDim))).exp();
       }},
      {{"model.attention=cosformer"},
       [=](const CosineMechanism*, const at::Tensor& q, const at::Tensor& k) {
         return products(q.relu(), k.relu()) * cosine(theta);
       }},
      {{"model.attention=linear"},
       [](const CosineMechanism*, const at::Tensor& q, const at::Tensor& k) {
         return products(at::elu(q) + 1, at::elu(k) + 1);
       }},
      {{"model.attention=cosformer_plus", "attention.decay=true"},
       [=](const CosineMechanism* m, const at::Tensor& q, const at::Tensor& k) {
         const at::Tensor decay = m->log_decay().to(at::kDouble).view({kHeads, 1, 1});
         return products(q.relu(), k.relu()) * cosine(theta) * (decay * distances().abs()).exp();
       }},
      {{"model.attention=cosformer_plus", "attention.decay=false", "attention.head_norm=true",
        "attention.theta_spread=true"},
       [](const CosineMechanism* m, const at::Tensor& q, const at::Tensor& k) {
         return products(q.relu(), k.relu()) *
                (distances().unsqueeze(0) * m->theta.to(at::kDouble).view({kHeads, 1, 1})).cos();
       },
       false},
  };
}

TEST(Mechanism, IsItsFormulaWithGradientsMasksAndBothDirections) {
  at::manual_seed(11);
  for (const Case& c : cases()) {
    for (const bool causal : {false, true}) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(c.assignments.front() + (causal ? " causal" : " full") + (masked ? " masked" : ""));
        AttentionConfig config = config_of(c.assignments);
        if (reads_option(config.name, "attention.horizon")) config.horizon = kHorizon;
        const auto mechanism = make_mechanism(config, {kHeads, kDim, kTime, causal});
        const auto input = [] { return at::randn({2, kTime, kHeads, kDim}, at::kDouble).requires_grad_(); };
        const at::Tensor q = input(), k = input(), v = input();
        at::Tensor mask;
        if (masked) {
          mask = at::ones({2, kTime}, at::kBool);
          mask[1].narrow(0, 15, 8).fill_(false);
        }
        const at::Tensor out = mechanism->forward(q, k, v, mask);
        const auto* cosine = dynamic_cast<const CosineMechanism*>(mechanism.get());
        const at::Tensor expected = weighted(c.weights(cosine, q, k), v, mask, causal, c.divide);
        const at::Tensor scale = expected.abs().max();
        EXPECT_LT(((out - expected).abs().max() / scale).item<double>(), 1e-6);
        const at::Tensor dout = at::randn_like(out);
        const auto gradients = [&](const at::Tensor& y) { return torch::autograd::grad({y}, {q, k, v}, {dout}, true); };
        const auto got = gradients(out), wanted = gradients(expected);
        for (std::size_t at = 0; at < 3; ++at) {
          EXPECT_LT(((got[at] - wanted[at]).abs().max() / wanted[at].abs().max()).item<double>(), 1e-6) << at;
        }
      }
    }
  }
}

TEST(Mechanism, TheDecayIsLearned) {
  const auto mechanism = make_mechanism(config_of({"model.attention=cosformer_plus", "attention.decay=true"}),
                                        {kHeads, kDim, kTime, false});
  const auto input = [] { return at::randn({2, kTime, kHeads, kDim}); };
  mechanism->forward(input(), input(), input(), {}).square().sum().backward();
  const at::Tensor gradient = mechanism->parameters().front().grad();
  EXPECT_GT(gradient.abs().min().item<double>(), 0);
}

// A padded sequence and the same one alone, through projections, convolution, gate and mechanism.
TEST(MultiHeadAttention, PaddingChangesNothing) {
  at::manual_seed(12);
  for (const char* name : {"softmax", "cosformer", "linear", "cosformer_plus"}) {
    AttentionConfig config = config_of({std::string("model.attention=") + name});
    MultiHeadAttention attention({8, {2, 4, 20, false}, true, std::string(name) == "softmax"}, config);
    const at::Tensor x = at::randn({1, 20, 8});
    const at::Tensor mask = at::arange(20).lt(13).unsqueeze(0);
    const at::Tensor padded = attention.forward(x, mask).narrow(1, 0, 13);
    const at::Tensor alone = attention.forward(x.narrow(1, 0, 13).contiguous(), {});
    EXPECT_LT((padded - alone).abs().max().item<double>(), 1e-5) << name;
  }
}

TEST(AttentionConfig, ThePaperIsThePaper) {
  EXPECT_EQ(label_of(config_of({"model.attention=cosformer"}), false), "cosformer");
  EXPECT_EQ(label_of(config_of({"model.attention=cosformer_plus"}), false), "cosformer_plus");
  EXPECT_EQ(label_of(config_of({"model.attention=cosformer_plus"}), true), "cosformer_plus (decay=false)");
  EXPECT_EQ(label_of(config_of({"model.attention=softmax", "attention.convolution=3"}), false),
            "softmax (convolution=3)");
  for (const char* extra :
       {"attention.decay=true", "attention.convolution=4", "attention.gate=true", "attention.head_norm=true"}) {
    EXPECT_THROW(require_possible(config_of({"model.attention=cosformer", extra}), false), UserError) << extra;
  }
  EXPECT_THROW(require_possible(config_of({"model.attention=softmax", "attention.decay=true"}), false), UserError);
  EXPECT_THROW(require_possible(config_of({"model.attention=cosformer_plus", "attention.theta_spread=true",
                                           "attention.head_norm=false"}),
                                false),
               UserError);
  EXPECT_THROW(require_possible(config_of({"model.attention=linear", "attention.reweight=true"}), false), UserError);
  EXPECT_THROW(MultiHeadAttention({8, {2, 4, 20, false}, true, true}, config_of({"model.attention=cosformer"})),
               UserError);
}

TEST(Positions, RotationKeepsLengthsAndSeesDistancesOnly) {
  const at::Tensor table = rotary_table(50, 8);
  const at::Tensor q = at::randn({8}), k = at::randn({8});
  const auto at_place = [&](const at::Tensor& x, std::int64_t t) {
    return rotate(x.expand({1, 50, 1, 8}), table)[0][t][0];
  };
  EXPECT_NEAR(at_place(q, 37).norm().item<double>(), q.norm().item<double>(), 1e-5);
  EXPECT_NEAR(at::dot(at_place(q, 9), at_place(k, 4)).item<double>(),
              at::dot(at_place(q, 45), at_place(k, 40)).item<double>(), 1e-4);
  const at::Tensor sines = sinusoidal_table(100, 6);
  EXPECT_NEAR(sines[99][0].item<double>(), std::sin(99.0), 1e-6);
  EXPECT_NEAR(sines[99][3].item<double>(), std::cos(99.0), 1e-6);
}

}  // namespace
}  // namespace cosformer::nn
