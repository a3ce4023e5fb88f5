// What must hold whatever the numbers are: causality, packing, masking, streaming, determinism.
#include <mutex>
#include <set>
#include <thread>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cosformer/attention.h"
#include "kernels/cpu/attention.h"
#include "kernels/verify/run_case.h"
#include "ops/cpu/kernel_choice.h"
#include "ops/operator_case.h"

namespace cosformer {
namespace {

at::Tensor numbers(at::IntArrayRef shape, std::uint64_t seed) {
  torch::manual_seed(seed);
  return at::randn(shape, at::kDouble);
}

// In float64, where forms differ by rounding alone.
void expect_close(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  if (a.numel() == 0) return;
  const double scale = std::max(1.0, b.abs().max().item<double>());
  EXPECT_LE((a - b).abs().max().item<double>(), 1e-12 * scale) << what;
}

TEST(Properties, SplittingAnywhereAndCarryingTheStateEqualsTheWhole) {
  const std::int64_t length = 70;
  const auto q = numbers({2, length, 3, 12}, 1), k = numbers({2, length, 3, 12}, 2), v = numbers({2, length, 3, 5}, 3);
  for (const bool decay : {false, true}) {
    StreamOptions stream{.horizon = 200};
    AttentionOptions whole{.causal = true, .horizon = 200};
    if (decay) stream.log_decay = whole.log_decay = at::tensor({-0.5F, -0.01F, 0.0F});
    const auto expected = attention(q, k, v, whole);
    for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{1}, {69}, {16, 16, 38}, {0, 5, 32, 33}, {64, 6}}) {
      auto state = AttentionState::empty(2, 3, 12, 5, q.options());
      std::vector<at::Tensor> parts;
      std::int64_t at = 0;
      for (std::size_t piece = 0; at < length; ++piece) {
        const std::int64_t count = piece < cuts.size() ? cuts[piece] : length - at;
        parts.push_back(attention_with_state(q.narrow(1, at, count), k.narrow(1, at, count), v.narrow(1, at, count),
                                             state, stream));
        at += count;
      }
      expect_close(at::cat(parts, 1), expected, "split");
      EXPECT_EQ(state.position[0].item<std::int64_t>(), length);
    }
    auto state = AttentionState::empty(2, 3, 12, 5, q.options());  // one token at a time
    for (std::int64_t t = 0; t < length; ++t) {
      const auto out = attention_with_state(q.narrow(1, t, 1), k.narrow(1, t, 1), v.narrow(1, t, 1), state, stream);
      expect_close(out, expected.narrow(1, t, 1), "token " + std::to_string(t));
    }
  }
}

TEST(Properties, GradientsFlowThroughTheCarriedState) {
  const auto q = numbers({1, 20, 2, 6}, 4).requires_grad_();
  const StreamOptions stream{.horizon = 64};
  auto state = AttentionState::empty(1, 2, 6, 6, q.options());
  const auto first = attention_with_state(q.narrow(1, 0, 9), q.narrow(1, 0, 9), q.narrow(1, 0, 9), state, stream);
  const auto rest = attention_with_state(q.narrow(1, 9, 11), q.narrow(1, 9, 11), q.narrow(1, 9, 11), state, stream);
  const auto weights = numbers({1, 20, 2, 6}, 5);
  const auto streamed = torch::autograd::grad({(at::cat({first, rest}, 1) * weights).sum()}, {q})[0];
  const auto out = attention(q, q, q, {.causal = true, .horizon = 64});
  expect_close(streamed, torch::autograd::grad({(out * weights).sum()}, {q})[0], "dq through the state");
}

TEST(Properties, PackedEqualsEachAlone) {
  const std::vector<std::int64_t> lengths_q{5, 1, 0, 40, 17}, lengths_k{5, 7, 3, 21, 17};
  const auto q = numbers({1, 63, 2, 8}, 6).requires_grad_(), k = numbers({1, 53, 2, 8}, 7).requires_grad_(),
             v = numbers({1, 53, 2, 8}, 8).requires_grad_();
  const auto weights = numbers({1, 63, 2, 8}, 9);
  for (const bool causal : {true, false}) {
    AttentionOptions packed{.causal = causal};
    packed.cu_seqlens_q = at::tensor({0, 5, 6, 6, 46, 63}, at::kInt);
    packed.cu_seqlens_k = at::tensor({0, 5, 12, 15, 36, 53}, at::kLong);
    std::vector<at::Tensor> parts;
    std::int64_t at_q = 0, at_k = 0;
    for (std::size_t s = 0; s < lengths_q.size(); ++s) {
      parts.push_back(attention(q.narrow(1, at_q, lengths_q[s]), k.narrow(1, at_k, lengths_k[s]),
                                v.narrow(1, at_k, lengths_k[s]), {.causal = causal}));
      at_q += lengths_q[s];
      at_k += lengths_k[s];
    }
    const auto together = attention(q, k, v, packed), alone = at::cat(parts, 1);
    expect_close(together, alone, "packed");
    const auto gradients = torch::autograd::grad({(together * weights).sum()}, {q, k, v});
    const auto expected = torch::autograd::grad({(alone * weights).sum()}, {q, k, v});
    for (std::size_t at = 0; at < 3; ++at) expect_close(gradients[at], expected[at], "packed gradient");
  }
}

TEST(Properties, MaskedEqualsShorter) {
  const auto q = numbers({2, 30, 2, 8}, 10), k = numbers({2, 30, 2, 8}, 11), v = numbers({2, 30, 2, 8}, 12);
  for (const std::string map : {"relu", "elu1", "silu", "identity"}) {
    AttentionOptions masked{.horizon = 30, .feature_map = map, .normalizer = map == "relu" ? "sum" : "none"};
    masked.key_mask = at::arange(30).lt(19).expand({2, 30});
    AttentionOptions shorter = masked;
    shorter.key_mask = at::Tensor();
    expect_close(attention(q, k, v, masked), attention(q, k.narrow(1, 0, 19), v.narrow(1, 0, 19), shorter), map);
  }
}

TEST(Properties, ConstantValuesGiveConstantOutput) {
  const auto q = numbers({1, 50, 2, 16}, 13), k = numbers({1, 50, 2, 16}, 14);
  for (const bool causal : {true, false}) {
    const auto out = attention(q, k, at::full({1, 50, 2, 3}, 2.5, at::kDouble), {.causal = causal});
    const auto attended = attention(q, k, at::ones({1, 50, 2, 1}, at::kDouble), {.causal = causal}).gt(0.5);
    EXPECT_GT(attended.sum().item<std::int64_t>(), 90);
    expect_close(out.masked_select(attended), at::full({1, 50, 2, 3}, 2.5, at::kDouble).masked_select(attended), "");
  }
}

// Bits, not tolerances: in every instruction set that this machine runs, for several thread counts.
TEST(Properties, TheFutureDoesNotTouchThePast) {
  const int threads = at::get_num_threads();
  for (const kernels::AttentionKernels* set : kernels::cpu::compiled_kernels()) {
    if (!kernels::cpu::cpu_can_run(set->name)) continue;
    const ops::UseCpuKernels use(*set);
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const auto x = numbers({1, 700, 1, 24}, 15).to(type);
        for (const std::int64_t changed : {1, 63, 64, 350, 699}) {
          auto y = x.clone();
          y.narrow(1, changed, 1).add_(3);
          const AttentionOptions options{.causal = true};
          const auto before = attention(x, x, x, options), after = attention(y, y, y, options);
          EXPECT_TRUE(at::equal(before.narrow(1, 0, changed), after.narrow(1, 0, changed)))
              << set->name << ' ' << count << " threads, token " << changed;
          EXPECT_FALSE(at::equal(before.narrow(1, changed, 1), after.narrow(1, changed, 1)));
        }
      }
    }
  }
  at::set_num_threads(threads);
}

// One long sequence with one head uses every thread that torch is set to.
TEST(Properties, OneHeadUsesAllThreads) {
  static std::mutex guard;
  static std::set<std::thread::id> seen;
  static const kernels::AttentionKernels& real = kernels::cpu::chosen_kernels();
  static kernels::AttentionKernels watched = real;
  watched.run_fwd = [](const kernels::AttentionProblem& p, const kernels::Schedule& s, const kernels::Work& w) {
    const std::lock_guard lock(guard);
    seen.insert(std::this_thread::get_id());
    real.run_fwd(p, s, w);
  };
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const auto x = at::randn({1, 8192, 1, 16});
  const auto expected = attention(x, x, x, {.causal = true});
  {
    const ops::UseCpuKernels use(watched);
    EXPECT_TRUE(at::equal(attention(x, x, x, {.causal = true}), expected));
  }
  at::set_num_threads(threads);
  EXPECT_EQ(seen.size(), 2U);
}

TEST(Properties, SameInputsSameBits) {
  for (std::uint64_t seed = 400; seed < 420; ++seed) {
    const auto c = kernels::verify::random_case(seed);
    const auto data = kernels::verify::make_data(c);
    const auto first = ops::run_operator(c, data, at::kCPU), second = ops::run_operator(c, data, at::kCPU);
    for (const auto& named : kernels::verify::result_parts()) {
      EXPECT_EQ(first.*named.part, second.*named.part) << named.name << ' ' << c.describe();
    }
  }
}

}  // namespace
}  // namespace cosformer
