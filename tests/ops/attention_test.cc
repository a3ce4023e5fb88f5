// The operator as users call it, through the dispatcher and autograd, against the definition.
#include "cosformer/attention.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kernels/verify/run_case.h"
#include "ops/operator_case.h"

namespace cosformer {
namespace {

using kernels::DType;
using kernels::FeatureMap;
using kernels::verify::AttentionCase;

void expect_within(const AttentionCase& c) {
  const auto data = kernels::verify::make_data(c);
  const auto yardstick = kernels::verify::make_yardstick(c, data);
  const auto result = ops::run_operator(c, data, at::kCPU);
  for (const auto& part : kernels::verify::compare(c, yardstick, result)) {
    EXPECT_TRUE(part.within()) << part.name << ": error " << part.error << ", bound " << part.bound << "; "
                               << c.describe();
  }
}

TEST(Attention, RandomCasesAreWithinTheirBounds) {
  for (std::uint64_t seed = 9000; seed < 9120; ++seed) {
    expect_within(kernels::verify::random_case(seed, {.max_length = 80, .max_dim = 64}));
  }
}

TEST(Attention, EveryHeadDimension) {
  for (const std::int64_t dim :
       {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 200, 255, 256}) {
    AttentionCase c;
    c.seed = static_cast<std::uint64_t>(dim);
    c.dim = dim;
    c.value_dim = dim % 2 == 0 ? dim : 257 - dim;
    c.q_lengths = c.k_lengths = {37};
    c.causal = dim % 3 != 0;
    expect_within(c);
  }
}

TEST(Attention, ShortAndAwkwardLengths) {
  std::uint64_t seed = 0;
  for (const auto& [tq, tk] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {1, 9}, {9, 1}, {0, 5}, {5, 0}, {0, 0}, {31, 33}, {64, 64}, {65, 127}, {129, 3}, {3, 129}}) {
    for (const bool causal : {true, false}) {
      for (const bool decay : {true, false}) {
        AttentionCase c;
        c.seed = ++seed;
        c.batch = 2;
        c.heads = 2;
        c.q_lengths = {tq};
        c.k_lengths = {tk};
        c.causal = causal;
        c.decay = decay;
        expect_within(c);
      }
    }
  }
}

TEST(Attention, HugeAndTinyMagnitudes) {
  for (const double scale : {1e-18, 1e-9, 1e9, 1e15}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      AttentionCase c;
      c.seed = 5;
      c.dtype = dtype;
      c.q_lengths = c.k_lengths = {50};
      c.scale = scale;
      expect_within(c);
    }
  }
}

TEST(Attention, PositionsNearABillion) {
  for (const bool decay : {true, false}) {
    AttentionCase c;
    c.seed = 17;
    c.batch = 2;
    c.q_lengths = c.k_lengths = {40};
    c.carry_state = true;
    c.position = 999'999'900;
    c.horizon = 1'000'000'000;
    c.decay = decay;
    expect_within(c);
  }
}

// With negative inputs everywhere ReLU features vanish: nothing to attend to is exactly zero, and so are gradients.
TEST(Attention, NothingToAttendToIsExactlyZero) {
  const auto negative = (-at::rand({1, 9, 2, 4}) - 0.1).requires_grad_();
  const auto v = at::randn({1, 9, 2, 4}).requires_grad_();
  for (const bool causal : {true, false}) {
    AttentionOptions options;
    options.causal = causal;
    const auto out = attention(negative, negative, v, options);
    EXPECT_TRUE(out.eq(0).all().item<bool>());
    const auto gradients = torch::autograd::grad({out.sum()}, {negative, v});
    EXPECT_TRUE(gradients[0].eq(0).all().item<bool>());
    EXPECT_TRUE(gradients[1].eq(0).all().item<bool>());

    options.key_mask = at::zeros({1, 9}, at::kBool);
    options.feature_map = "elu1";
    EXPECT_TRUE(attention(v, v, v, options).eq(0).all().item<bool>());
  }
  const auto no_keys = at::empty({1, 0, 2, 4});
  EXPECT_TRUE(attention(v.detach(), no_keys, no_keys).eq(0).all().item<bool>());
}

// Where there are no sequences the gradient of what all would have in common is zero, not what memory held before.
TEST(Attention, NoSequencesGiveTheDecayAGradientOfZero) {
  const auto q = at::randn({1, 0, 64, 4}).requires_grad_();
  AttentionOptions options;
  options.log_decay = at::full({64}, -0.5).requires_grad_();
  options.cu_seqlens_q = options.cu_seqlens_k = at::zeros({1}, at::kInt);
  for (int repeat = 0; repeat < 10; ++repeat) {
    at::full({64}, 7.0, at::kDouble);  // and is given back
    const auto out = attention(q, q, q, options);
    EXPECT_TRUE(torch::autograd::grad({out}, {options.log_decay}, {at::ones_like(out)})[0].eq(0).all().item<bool>());
  }
}

// A gradient that arrives expanded from a sum has no memory of its own.
TEST(Attention, ExpandedGradient) {
  const auto q = at::randn({2, 12, 3, 8}).requires_grad_();
  const auto out = attention(q, q, q, {.causal = true});
  const auto from_sum = torch::autograd::grad({out.sum()}, {q}, {}, /*retain_graph=*/true)[0];
  const auto from_ones = torch::autograd::grad({out}, {q}, {at::ones_like(out)})[0];
  EXPECT_TRUE(at::equal(from_sum, from_ones));
}

}  // namespace
}  // namespace cosformer
