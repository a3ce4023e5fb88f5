// A decay that each token decides on, against its definition, in stretches and at its limits.
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "nn/mechanisms/attention_traits.h"
#include "nn/mechanisms/kernelised/token_decay_mechanism.h"
#include "nn/multi_head_attention.h"

namespace cosformer::nn {
namespace {

constexpr std::int64_t kWidth = 10, kTime = 150, kHeads = 3, kDim = 6, kLongest = 200;  // 150: three segments

AttentionConfig token_config() {
  AttentionConfig config = preset_of("cosformer_plus", true);
  config.token_decay = true;
  return config;
}

AttentionShape causal_shape() {
  AttentionShape shape;
  shape.heads = kHeads;
  shape.dim = kDim;
  shape.max_length = kLongest;
  shape.causal = true;
  shape.width = kWidth;
  return shape;
}

struct Inputs {
  at::Tensor x, q, k, v;
  std::vector<at::Tensor> all() const { return {x, q, k, v}; }
};

Inputs random_inputs() {
  at::manual_seed(11);
  const auto heads = [] { return at::randn({2, kTime, kHeads, kDim}, at::kDouble).requires_grad_(); };
  const at::Tensor x = at::randn({2, kTime, kWidth}, at::kDouble).requires_grad_();
  return {x, heads(), heads(), heads()};
}

std::shared_ptr<TokenDecayMechanism> mechanism_of(const AttentionConfig& config) {
  at::manual_seed(5);
  auto mechanism = std::make_shared<TokenDecayMechanism>(config, causal_shape());
  mechanism->to(at::kDouble);
  return mechanism;
}

double epsilon_of(at::ScalarType type) {
  return type == at::kFloat  ? std::numeric_limits<float>::epsilon()
         : type == at::kHalf ? std::numeric_limits<c10::Half>::epsilon()
                             : std::numeric_limits<c10::BFloat16>::epsilon();
}

// The formula of the header, pair by pair.
at::Tensor written_out(const TokenDecayMechanism& m, const AttentionConfig& config, const Inputs& in,
                       const at::Tensor& mask = {}) {
  const at::Tensor logits = at::matmul(in.x, m.step_proj->weight.t()) + m.step_proj->bias;
  at::Tensor forgotten = ((1 + logits.exp()).log() * m.log_rate.exp()).clamp_max(0.9);  // [B, T, H]
  if (mask.defined()) forgotten = forgotten * mask.unsqueeze(-1);
  const at::Tensor total = forgotten.cumsum(1).transpose(1, 2);  // [B, H, T]
  const at::Tensor later = at::ones({kTime, kTime}, at::kBool).triu(1);
  const at::Tensor kept = (total.unsqueeze(-2) - total.unsqueeze(-1)).masked_fill(later, -1e300).exp();  // [.., t, s]
  const at::Tensor places = at::arange(kTime, at::kDouble);
  const at::Tensor cosine = ((places.unsqueeze(1) - places) * (M_PI / 2 / kLongest)).cos();
  const auto rows = [](const at::Tensor& y) { return y.relu().transpose(1, 2); };
  at::Tensor w = at::matmul(rows(in.q), rows(in.k).transpose(2, 3)) * cosine * kept;
  if (mask.defined()) w = w * mask.view({2, 1, 1, kTime});
  if (!config.head_norm) w = w / w.sum(-1, true).clamp_min(config.eps);
  return at::matmul(w, in.v.transpose(1, 2)).transpose(1, 2);
}

TEST(TokenDecay, IsItsDefinitionWithGradients) {
  for (const bool head_norm : {false, true}) {
    AttentionConfig config = token_config();
    config.head_norm = head_norm;
    const auto m = mechanism_of(config);
    const Inputs in = random_inputs();
    const at::Tensor out = m->forward_with_input(in.x, in.q, in.k, in.v, {});
    const at::Tensor wanted = written_out(*m, config, in);
    EXPECT_TRUE(at::allclose(out, wanted, 1e-9, 1e-11)) << (out - wanted).abs().max();
    std::vector<at::Tensor> leaves = in.all();
    for (const at::Tensor& p : m->parameters()) leaves.push_back(p);
    const at::Tensor grad = at::randn_like(out);
    const auto got = torch::autograd::grad({out}, leaves, {grad});
    const auto expected = torch::autograd::grad({wanted}, leaves, {grad});
    for (std::size_t at = 0; at < leaves.size(); ++at) {
      EXPECT_TRUE(at::allclose(got[at], expected[at], 1e-7, 1e-9)) << at << (got[at] - expected[at]).abs().max();
    }
  }
}

TEST(TokenDecay, AbsentTokensNeitherAddNorForget) {
  const AttentionConfig config = token_config();
  const auto m = mechanism_of(config);
  const Inputs in = random_inputs();
  const at::Tensor mask = at::rand({2, kTime}) < 0.8;
  const at::Tensor out = m->forward_with_input(in.x, in.q, in.k, in.v, mask);
  EXPECT_TRUE(at::allclose(out, written_out(*m, config, in, mask), 1e-9, 1e-11));
}

TEST(TokenDecay, AStreamIsTheWhole) {
  MultiHeadConfig layer;
  layer.width = kWidth;
  layer.shape = causal_shape();
  at::manual_seed(3);
  MultiHeadAttention attention(layer, token_config());
  attention.to(at::kDouble);
  const at::Tensor x = at::randn({2, kTime, kWidth}, at::kDouble);
  LayerState state = attention.empty_state(2);
  StreamClock clock(2, at::kCPU);
  std::vector<at::Tensor> parts;
  for (const auto& [begin, count] : {std::pair<std::int64_t, std::int64_t>{0, 9}, {9, 1}, {10, 100}, {110, 40}}) {
    parts.push_back(attention.forward_stream(x.narrow(1, begin, count), state, clock));
    clock.advance(count);
  }
  EXPECT_TRUE(at::allclose(at::cat(parts, 1), attention.forward(x, {}), 1e-9, 1e-11));
}

// Every token forgets as much as it may: exponents of a segment are at their largest.
TEST(TokenDecay, TheStrongestForgettingStaysFiniteAndRight) {
  const AttentionConfig config = token_config();
  const auto m = mechanism_of(config);
  {
    const at::NoGradGuard no_grad;
    m->step_proj->bias.fill_(1e4);
  }
  const Inputs in = random_inputs();
  const at::Tensor wanted = m->forward_with_input(in.x, in.q, in.k, in.v, {}).detach();
  EXPECT_TRUE(at::allclose(wanted, written_out(*m, config, in), 1e-9, 1e-11));
  m->to(at::kFloat);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto as = [&](const at::Tensor& y) { return y.detach().to(type).requires_grad_(); };
    const Inputs low{as(in.x), as(in.q), as(in.k), as(in.v)};
    const at::Tensor out = m->forward_with_input(low.x, low.q, low.k, low.v, {});
    ASSERT_EQ(out.scalar_type(), type);
    // Of rows: one whose features all but vanish may differ by much, because its neighbours' rounding decides it.
    const double error = (out.to(at::kDouble) - wanted).abs().amax(-1).median().item<double>();
    EXPECT_LT(error, 4 * epsilon_of(type)) << type;
    for (const at::Tensor& g : torch::autograd::grad({out}, low.all(), {at::ones_like(out)})) {
      EXPECT_TRUE(at::isfinite(g).all().item<bool>()) << type;
    }
  }
}

// Just below the limit, where the gradient of the decay is not cut off: its factors e^±57 must not be multiplied with
// themselves, which float32 cannot hold.
TEST(TokenDecay, GradientsOfStrongForgettingAreFiniteAndRight) {
  const AttentionConfig config = token_config();
  const auto m = mechanism_of(config);
  {
    const at::NoGradGuard no_grad;
    m->log_rate.fill_(std::log(0.85));
    m->step_proj->weight.mul_(0.05);
  }
  const Inputs in = random_inputs();
  const at::Tensor grad = at::randn({2, kTime, kHeads, kDim}, at::kDouble);
  const auto gradients = [&](const Inputs& inputs) {
    std::vector<at::Tensor> leaves = inputs.all();
    for (const at::Tensor& p : m->parameters()) leaves.push_back(p);
    const at::Tensor out = m->forward_with_input(inputs.x, inputs.q, inputs.k, inputs.v, {});
    return torch::autograd::grad({out}, leaves, {grad.to(out.scalar_type())}, c10::nullopt, false, true);
  };
  const std::vector<at::Tensor> wanted = gradients(in);
  m->to(at::kFloat);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto as = [&](const at::Tensor& y) { return y.detach().to(type).requires_grad_(); };
    const std::vector<at::Tensor> got = gradients({as(in.x), as(in.q), as(in.k), as(in.v)});
    for (std::size_t at = 0; at < got.size(); ++at) {
      if (!wanted[at].defined()) continue;
      ASSERT_TRUE(at::isfinite(got[at]).all().item<bool>()) << type << " leaf " << at;
      const double error = (got[at].to(at::kDouble) - wanted[at]).abs().median().item<double>();
      EXPECT_LT(error, 40 * epsilon_of(type) * wanted[at].abs().mean().item<double>()) << type << " leaf " << at;
    }
  }
}

TEST(TokenDecay, WhatDoesNotGoTogetherIsRefused) {
  AttentionConfig config = token_config();
  require_possible(config, true);
  EXPECT_THROW(require_possible(config, false), UserError);
  config.decay = false;
  EXPECT_THROW(require_possible(config, true), UserError);
  config = token_config();
  config.theta_learned = true;
  EXPECT_THROW(require_possible(config, true), UserError);
  const auto m = mechanism_of(token_config());
  const at::Tensor heads = at::zeros({1, 4, kHeads, kDim});
  EXPECT_THROW(m->forward_packed(heads, heads, heads, {}), UserError);
}

}  // namespace
}  // namespace cosformer::nn
