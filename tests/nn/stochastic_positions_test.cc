// Stochastic positions: the processes written out from the same noise, their mean, and who takes them.
#include "nn/positions/stochastic_positions.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/multi_head_attention.h"

namespace cosformer::nn::testing {
namespace {

constexpr std::int64_t kHeads = 2, kDim = 3, kTime = 7;

std::shared_ptr<StochasticPositions> make_positions(const StochasticPositionConfig& config) {
  auto positions = std::make_shared<StochasticPositions>(config, kHeads, kDim);
  positions->to(at::kDouble);
  positions->eval();
  at::NoGradGuard no_grad;
  positions->phase.normal_();
  if (config.gated) positions->gate.normal_();
  return positions;
}

// q̂ (or k̂, without the phase) by loops over tokens, heads, dimensions and sines.
at::Tensor by_loops(const StochasticPositions& p, const StochasticPositionConfig& config, const at::Tensor& x,
                    bool is_query) {
  std::vector<at::Tensor> tokens;
  for (std::int64_t t = 0; t < kTime; ++t) {
    std::vector<at::Tensor> heads;
    for (std::int64_t h = 0; h < kHeads; ++h) {
      at::Tensor sum = at::zeros({x.size(0), config.realizations}, at::kDouble);
      for (std::int64_t d = 0; d < kDim; ++d) {
        const std::int64_t first = (h * kDim + d) * config.sines;
        const at::Tensor powers = p.gain.narrow(0, first, config.sines).softmax(0);
        at::Tensor process = at::zeros({config.realizations}, at::kDouble);
        for (std::int64_t s = 0; s < config.sines; ++s) {
          at::Tensor angle = std::numbers::pi * p.frequency[first + s].sigmoid() * static_cast<double>(t);
          if (is_query) angle = angle + p.phase[first + s];
          process = process +
                    powers[s].sqrt() * (angle.cos() * p.noise[h][d][s] + angle.sin() * p.noise[h][d][config.sines + s]);
        }
        if (config.gated) {
          const at::Tensor share = p.gate[h * kDim + d].sigmoid();
          process = share.sqrt() * process + (1 - share).sqrt() * p.gate_noise[h][d][0];
        }
        sum = sum + x.select(1, t).select(1, h).select(1, d).unsqueeze(1) * process;
      }
      heads.push_back(sum / std::sqrt(static_cast<double>(config.realizations)));
    }
    tokens.push_back(at::stack(heads, 1));
  }
  return at::stack(tokens, 1);
}

TEST(StochasticPositions, AreTheirDefinition) {
  at::manual_seed(8);
  for (const bool gated : {false, true}) {
    const StochasticPositionConfig config{5, 4, gated};
    const auto p = make_positions(config);
    const auto input = [] { return at::randn({2, kTime, kHeads, kDim}, at::kDouble).requires_grad_(); };
    const at::Tensor q = input(), k = input();
    const auto [new_q, new_k] = p->forward(q, k);
    std::vector<at::Tensor> inputs{q, p->frequency, p->gain, p->phase};
    if (gated) inputs.push_back(p->gate);
    expect_same(new_q, by_loops(*p, config, q, true), {}, inputs);
    inputs.front() = k;
    expect_same(new_k, by_loops(*p, config, k, false), {}, inputs);
  }
}

// The mean over realisations tends to Σ_d q_d k_d P_d(m, n).
TEST(StochasticPositions, ProductsTendToThePositionKernel) {
  at::manual_seed(9);
  for (const bool gated : {false, true}) {
    const auto p = make_positions({60000, 4, gated});
    const auto input = [] { return at::randn({1, kTime, kHeads, kDim}, at::kDouble); };
    const at::Tensor q = input(), k = input();
    const auto [new_q, new_k] = p->forward(q, k);
    const at::Tensor exact = at::einsum("bmhd,bnhd,hdmn->bhmn", {q, k, p->kernel(kTime)});
    EXPECT_LT(difference(products(new_q, new_k), exact), 0.05);
  }
}

TEST(StochasticPositions, AreDrawnAnewInTrainingOnly) {
  const auto p = make_positions({5, 4, true});
  const at::Tensor x = at::randn({1, kTime, kHeads, kDim}, at::kDouble);
  EXPECT_TRUE(p->forward(x, x).first.equal(p->forward(x, x).first));
  p->train();
  EXPECT_FALSE(p->forward(x, x).first.equal(p->forward(x, x).first));
  const auto twice = p->forward(x, x).first + p->forward(x, x).first;
  twice.sum().backward();
  EXPECT_GT(p->frequency.grad().abs().sum().item<double>(), 0);
}

TEST(StochasticPositions, GoWithMechanismsOfFeaturesOnly) {
  at::manual_seed(10);
  MultiHeadConfig block{8, {2, 4, 20, false}, true};
  block.stochastic = StochasticPositionConfig{16, 3, false};
  for (const char* name : {"linear", "performer", "rfa", "cosformer", "cosformer_plus"}) {
    MultiHeadAttention attention(block, config_of({std::string("model.attention=") + name}));
    attention.eval();
    const at::Tensor x = at::randn({1, 20, 8}), mask = at::arange(20).lt(13).unsqueeze(0);
    const at::Tensor padded = attention.forward(x, mask).narrow(1, 0, 13);
    const at::Tensor alone = attention.forward(x.narrow(1, 0, 13).contiguous(), {});
    EXPECT_LT((padded - alone).abs().max().item<double>(), 1e-5) << name;
  }
  for (const char* name : {"softmax", "linformer", "nystromformer", "synthesizer", "one_vs_each"}) {
    EXPECT_THROW(MultiHeadAttention(block, config_of({std::string("model.attention=") + name})), UserError) << name;
  }
}

}  // namespace
}  // namespace cosformer::nn::testing
