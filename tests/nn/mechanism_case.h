// What the tests of mechanisms share: configs from assignments, random inputs, comparison with a definition.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nn/mechanisms/attention_config.h"
#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn::testing {

inline AttentionConfig config_of(const std::vector<std::string>& assignments, bool causal = false) {
  AttentionConfig config;
  Settings settings;
  add_settings(settings, config);
  for (const std::string& assignment : assignments) settings.assign(assignment);
  apply_preset(config, settings, causal);
  return config;
}

// A shape and float64 inputs that follow from a seed. The mask, where there is one, keeps the first of each sequence.
struct RandomCase {
  explicit RandomCase(std::uint64_t seed, bool masked, std::int64_t longest = 40, std::int64_t least_dim = 1) {
    at::manual_seed(seed);
    const auto pick = [](std::int64_t least, std::int64_t most) {
      return at::randint(least, most + 1, {1}, at::kLong).item<std::int64_t>();
    };
    batch = pick(1, 3);
    time = pick(1, longest);
    heads = pick(1, 3);
    dim = pick(least_dim, 9);
    const auto input = [&] { return at::randn({batch, time, heads, dim}, at::kDouble).requires_grad_(); };
    q = input();
    k = input();
    v = input();
    if (masked) {
      lengths = at::randint(1, time + 1, {batch, 1}, at::kLong);
      mask = at::arange(time).unsqueeze(0).lt(lengths);
    }
  }

  AttentionShape shape(bool causal) const { return {heads, dim, time + 3, causal}; }

  std::int64_t batch, time, heads, dim;
  at::Tensor q, k, v, mask, lengths;
};

inline std::string trace(std::uint64_t seed, const RandomCase& c, bool causal) {
  return "seed " + std::to_string(seed) + ", batch " + std::to_string(c.batch) + ", time " + std::to_string(c.time) +
         ", heads " + std::to_string(c.heads) + ", dim " + std::to_string(c.dim) + (causal ? ", causal" : "") +
         (c.mask.defined() ? ", masked" : "");
}

// In float64, so that differences are those of the formula.
template <class Kind>
std::shared_ptr<Kind> make(const AttentionConfig& config, const AttentionShape& shape) {
  auto mechanism = std::dynamic_pointer_cast<Kind>(make_mechanism(config, shape));
  if (!mechanism) throw std::logic_error("another mechanism than expected");
  mechanism->to(at::kDouble);
  return mechanism;
}

// The greatest difference, beside the greatest number; 0 for nothing at all.
inline double difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  return (a - b).abs().max().item<double>() / std::max(b.abs().max().item<double>(), 1e-12);
}

// float64 against float64, in another order of operations.
constexpr double kTolerance = 1e-9;

// Values at tokens that are present, and gradients with respect to `inputs` from there, each beside the greatest of all
// (some are zero but for rounding: with a single key to see, queries do not matter).
inline void expect_same(const at::Tensor& out, const at::Tensor& expected, const at::Tensor& mask,
                        const std::vector<at::Tensor>& inputs) {
  ASSERT_EQ(out.sizes(), expected.sizes());
  const at::Tensor present = mask.defined() ? mask.unsqueeze(-1).unsqueeze(-1).to(at::kDouble)
                                            : at::ones({out.size(0), out.size(1), 1, 1}, at::kDouble);
  EXPECT_LT(difference(out * present, expected * present), kTolerance);
  const at::Tensor dout = at::randn_like(out) * present;
  const auto gradients = [&](const at::Tensor& y) {
    return torch::autograd::grad({y}, inputs, {dout}, true, false, true);
  };
  const auto got = gradients(out), wanted = gradients(expected);
  double greatest = 1e-12;
  for (const at::Tensor& g : wanted) {
    if (g.defined()) greatest = std::max(greatest, g.abs().max().item<double>());
  }
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    ASSERT_EQ(got[at].defined(), wanted[at].defined()) << "gradient " << at;
    if (!got[at].defined()) continue;
    EXPECT_LT((got[at] - wanted[at]).abs().max().item<double>() / greatest, kTolerance) << "gradient " << at;
  }
}

// Σ_j w_ij v_j from weights [B, H, T, T] after hiding absent and, if causal, later keys; divided by their sum clamped
// at eps, unless that is 0.
inline at::Tensor attend(at::Tensor weights, const at::Tensor& v, const at::Tensor& mask, bool causal, double eps) {
  const std::int64_t time = v.size(1);
  if (mask.defined()) weights = weights * mask.unsqueeze(1).unsqueeze(1);
  if (causal) weights = weights * at::ones({time, time}, weights.options()).tril();
  if (eps > 0) weights = weights / weights.sum(-1, true).clamp_min(eps);
  return at::matmul(weights, v.transpose(1, 2)).transpose(1, 2);
}

// q_i·k_j, [B, H, T, T]
inline at::Tensor products(const at::Tensor& q, const at::Tensor& k) {
  return at::einsum("bihd,bjhd->bhij", {q, k});
}

// A padded sequence and the same one alone, whatever the padding holds.
inline void expect_padding_changes_nothing(Mechanism& mechanism, const RandomCase& c) {
  const at::NoGradGuard no_grad;
  const at::Tensor padded = mechanism.forward(c.q, c.k, c.v, c.mask);
  for (std::int64_t row = 0; row < c.batch; ++row) {
    const std::int64_t length = c.lengths[row].item<std::int64_t>();
    const auto alone = [&](const at::Tensor& x) { return x.narrow(0, row, 1).narrow(1, 0, length).contiguous(); };
    EXPECT_LT(difference(padded.narrow(0, row, 1).narrow(1, 0, length),
                         mechanism.forward(alone(c.q), alone(c.k), alone(c.v), {})),
              kTolerance);
  }
}

}  // namespace cosformer::nn::testing
