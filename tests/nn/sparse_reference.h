// What sparse mechanisms are compared with: softmax over a full matrix in float64 of which a table says who sees whom.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

// Whether, in a head, query i sees key j.
using Sees = std::function<bool(std::int64_t head, std::int64_t i, std::int64_t j)>;

inline AttentionConfig config_of(const std::vector<std::string>& assignments, bool causal = false) {
  AttentionConfig config;
  Settings settings;
  add_settings(settings, config);
  for (const std::string& assignment : assignments) settings.assign(assignment);
  apply_preset(config, settings, causal);
  return config;
}

inline std::string option(const char* name, std::int64_t value) {
  return std::string("attention.") + name + "=" + std::to_string(value);
}

// [H, T, T], pair by pair.
inline at::Tensor visible_pairs(std::int64_t heads, std::int64_t time, const Sees& sees) {
  at::Tensor visible = at::zeros({heads, time, time}, at::kBool);
  auto table = visible.accessor<bool, 3>();
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < time; ++i) {
      for (std::int64_t j = 0; j < time; ++j) table[h][i][j] = sees(h, i, j);
    }
  }
  return visible;
}

// q, k, v [B, T, H, D]; visible to be broadcast to [B, H, Tq, Tk].
inline at::Tensor dense_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& visible, const at::Tensor& key_mask) {
  at::Tensor seen = visible;
  if (key_mask.defined()) seen = seen.logical_and(key_mask.unsqueeze(1).unsqueeze(1));
  const at::Tensor scores =
      at::matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor weights = (scores - scores.detach().amax(-1, true)).exp() * seen;
  const at::Tensor sums = weights.sum(-1, true);
  return at::matmul(weights / (sums + sums.eq(0)), v.transpose(1, 2)).transpose(1, 2);
}

struct Drawn {
  std::int64_t batch, time, heads, dim;
  at::Tensor q, k, v, mask;  // mask undefined in a third of the cases
};

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) { at::manual_seed(seed); }

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }

  Drawn inputs(std::int64_t longest) {
    Drawn d;
    d.batch = between(1, 3);
    d.time = between(1, longest);
    d.heads = between(1, 3);
    d.dim = between(1, 6);
    const auto tensor = [&] { return at::randn({d.batch, d.time, d.heads, d.dim}, at::kDouble).requires_grad_(); };
    d.q = tensor();
    d.k = tensor();
    d.v = tensor();
    const std::int64_t kind = between(0, 2);
    if (kind == 1) d.mask = at::rand({d.batch, d.time}).lt(0.6);  // holes; whole rows may be hidden
    if (kind == 2) d.mask = at::arange(d.time).unsqueeze(0).lt(at::randint(0, d.time + 1, {d.batch, 1}));
    return d;
  }

 private:
  std::mt19937 engine_;
};

inline std::string text_of(const Drawn& d, unsigned seed) {
  return "seed " + std::to_string(seed) + ", B " + std::to_string(d.batch) + ", T " + std::to_string(d.time) + ", H " +
         std::to_string(d.heads) + ", D " + std::to_string(d.dim) + (d.mask.defined() ? ", masked" : "");
}

// float64 on both sides: what is left is rounding.
inline void expect_close(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  EXPECT_TRUE(at::isfinite(got).all().item<bool>()) << what;
  const double scale = std::max(1.0, wanted.abs().max().item<double>());
  EXPECT_LT((got - wanted).abs().max().item<double>() / scale, 1e-11) << what;
}

// Outputs, and gradients by every one of `inputs`.
inline void expect_same(const at::Tensor& got, const at::Tensor& wanted, const std::vector<at::Tensor>& inputs) {
  expect_close(got, wanted, "output");
  const at::Tensor dout = at::randn_like(wanted);
  const auto gradients = [&](const at::Tensor& y) {
    return torch::autograd::grad({y}, inputs, {dout}, /*retain_graph=*/true, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  };
  const auto g = gradients(got), w = gradients(wanted);
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    const auto or_zero = [&](const at::Tensor& x) { return x.defined() ? x : at::zeros_like(inputs[at]); };
    expect_close(or_zero(g[at]), or_zero(w[at]), "gradient " + std::to_string(at));
  }
}

}  // namespace cosformer::nn
