// Cross-attention against its definition, against self-attention of padded sequences, and written token by token.
#include "nn/cross_attention.h"

#include <cmath>
#include <numbers>
#include <tuple>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "mechanism_case.h"

namespace cosformer::nn {
namespace {

using cosformer::testing::message_of;
using testing::config_of;
using testing::difference;
using testing::kTolerance;

// Two sequences of different lengths, in float64.
struct CrossCase {
  CrossCase(std::uint64_t seed, bool masked) {
    at::manual_seed(seed);
    const auto pick = [](std::int64_t least, std::int64_t most) {
      return at::randint(least, most + 1, {1}, at::kLong).item<std::int64_t>();
    };
    const std::int64_t batch = pick(1, 3);
    queries = pick(1, 24);
    keys = pick(1, 24);
    heads = pick(1, 3);
    dim = pick(2, 9);
    const auto input = [&](std::int64_t time) {
      return at::randn({batch, time, heads, dim}, at::kDouble).requires_grad_();
    };
    q = input(queries);
    k = input(keys);
    v = input(keys);
    if (masked) mask = at::arange(keys).unsqueeze(0).lt(at::randint(1, keys + 1, {batch, 1}, at::kLong));
  }

  AttentionShape shape() const { return {heads, dim, 30, false}; }
  std::string trace() const {
    return std::to_string(queries) + " queries, " + std::to_string(keys) + " keys" + (mask.defined() ? ", masked" : "");
  }

  std::int64_t queries, keys, heads, dim;
  at::Tensor q, k, v, mask;
};

struct Variant {
  std::string name;
  std::vector<std::string> assignments;
};
void PrintTo(const Variant& variant, std::ostream* stream) {
  *stream << variant.name;
}

const Variant kCosformer{"cosformer", {"model.attention=cosformer"}};
const Variant kLinear{"linear", {"model.attention=linear"}};
const Variant kSoftmax{"softmax", {"model.attention=softmax"}};
const Variant kLearned{"learned_angles", {"model.attention=cosformer_plus", "attention.theta_learned=true"}};
const Variant kSpread{"spread_angles",
                      {"model.attention=cosformer_plus", "attention.head_norm=true", "attention.theta_spread=true"}};

std::shared_ptr<Mechanism> mechanism_of(const Variant& variant, const AttentionShape& shape) {
  auto mechanism = make_mechanism(cross_attention_config(config_of(variant.assignments)), shape);
  mechanism->to(at::kDouble);
  mechanism->eval();
  return mechanism;
}

// Σ_j w_ij v_j / Σ_j w_ij with w_ij = φ(q_i)·φ(k_j) cos(θ(i − j)), or softmax(q·k/√d).
at::Tensor defined(const Variant& variant, const CrossCase& c, const Mechanism& mechanism) {
  at::Tensor weights;
  if (variant.name == "softmax") {
    weights = (testing::products(c.q, c.k) / std::sqrt(static_cast<double>(c.dim))).exp();
  } else {
    const auto feature = [&](const at::Tensor& x) {
      return variant.name == "linear" ? at::where(x > 0, x + 1, x.exp()) : x.relu();
    };
    at::Tensor theta = at::full({c.heads}, std::numbers::pi / (2 * 30), at::kDouble);
    if (variant.name == "linear") theta = theta * 0;
    if (variant.name == "learned_angles") {
      theta = theta * mechanism.named_parameters()["angle"].to(at::kDouble).sigmoid();
    }
    if (variant.name == "spread_angles") theta = mechanism.named_buffers()["theta"].to(at::kDouble);
    const at::Tensor distance = at::arange(c.queries, at::kDouble).unsqueeze(1) - at::arange(c.keys, at::kDouble);
    weights = testing::products(feature(c.q), feature(c.k)) * (distance * theta.view({-1, 1, 1})).cos();
  }
  if (c.mask.defined()) weights = weights * c.mask.unsqueeze(1).unsqueeze(1);
  if (variant.name != "spread_angles") weights = weights / weights.sum(-1, true).clamp_min(1e-6);
  return at::matmul(weights, c.v.transpose(1, 2)).transpose(1, 2);
}

class CrossDefinition : public ::testing::TestWithParam<Variant> {};

TEST_P(CrossDefinition, ForwardAndGradients) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const CrossCase c(seed, seed % 2 == 1);
    SCOPED_TRACE(c.trace());
    const auto mechanism = mechanism_of(GetParam(), c.shape());
    testing::expect_same(mechanism->forward_cross(c.q, c.k, c.v, c.mask), defined(GetParam(), c, *mechanism), {},
                         {c.q, c.k, c.v});
  }
}

INSTANTIATE_TEST_SUITE_P(Cross, CrossDefinition, ::testing::Values(kCosformer, kLinear, kSoftmax, kLearned, kSpread),
                         [](const auto& info) { return info.param.name; });

class CrossMechanisms : public ::testing::TestWithParam<Variant> {};

// Queries that nobody asks for and keys that are absent change nothing.
TEST_P(CrossMechanisms, EqualsSelfAttentionOfPaddedSequences) {
  const at::NoGradGuard no_grad;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const CrossCase c(seed, seed % 2 == 1);
    SCOPED_TRACE(c.trace());
    const auto mechanism = mechanism_of(GetParam(), c.shape());
    const std::int64_t longest = std::max(c.queries, c.keys);
    const auto padded = [&](const at::Tensor& x) {
      return at::constant_pad_nd(x, {0, 0, 0, 0, 0, longest - x.size(1)}, 0.5);
    };
    const at::Tensor mask = c.mask.defined() ? c.mask : at::ones({c.q.size(0), c.keys}, at::kBool);
    const at::Tensor expected =
        mechanism->forward(padded(c.q), padded(c.k), padded(c.v), at::constant_pad_nd(mask, {0, longest - c.keys}, 0))
            .narrow(1, 0, c.queries);
    EXPECT_LT(difference(mechanism->forward_cross(c.q, c.k, c.v, c.mask), expected), kTolerance);
  }
}

TEST_P(CrossMechanisms, WrittenInStretchesEqualsTheWhole) {
  const at::NoGradGuard no_grad;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const CrossCase c(seed, seed % 2 == 1);
    SCOPED_TRACE(c.trace());
    const auto mechanism = mechanism_of(GetParam(), c.shape());
    const at::Tensor whole = mechanism->forward_cross(c.q, c.k, c.v, c.mask);
    const MechanismState memory = mechanism->cross_memory(c.k, c.v, c.mask);
    StreamClock clock(c.q.size(0), at::kCPU);
    for (std::int64_t begin = 0; begin < c.queries;) {
      const std::int64_t size = std::min<std::int64_t>(1 + begin % 3, c.queries - begin);
      EXPECT_LT(difference(mechanism->recall(c.q.narrow(1, begin, size), memory, clock), whole.narrow(1, begin, size)),
                kTolerance);
      clock.advance(size);
      begin += size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cross, CrossMechanisms,
                         ::testing::Values(kCosformer, kLinear, kSoftmax, kLearned, kSpread,
                                           Variant{"silu",
                                                   {"model.attention=cosformer_plus", "attention.feature_map=silu"}},
                                           Variant{"performer", {"model.attention=performer", "attention.features=16"}},
                                           Variant{"rfa", {"model.attention=rfa", "attention.features=16"}},
                                           Variant{"one_vs_each", {"model.attention=one_vs_each"}}),
                         [](const auto& info) { return info.param.name; });

TEST(CrossMemory, DoesNotGrowWithTheSource) {
  const AttentionShape shape{2, 4, 30, false};
  const auto mechanism = mechanism_of(kCosformer, shape);
  const auto numbers = [&](std::int64_t keys) {
    const at::Tensor x = at::randn({1, keys, 2, 4}, at::kDouble);
    std::int64_t count = 0;
    for (const at::Tensor& tensor : mechanism->cross_memory(x, x, {}).tensors) count += tensor.numel();
    return count;
  };
  EXPECT_EQ(numbers(3), numbers(30));
}

MultiHeadConfig small_heads() {
  MultiHeadConfig config;
  config.width = 12;
  config.shape = {3, 4, 20, true};
  return config;
}

TEST(CrossAttention, RefusesWhatCannotAndSaysWhatCan) {
  for (const char* name : {"linformer", "reformer", "local", "longformer", "synthesizer", "sinkhorn"}) {
    const std::string message = message_of<UserError>(
        [&] { CrossAttention(small_heads(), config_of({std::string("model.attention=") + name})); });
    EXPECT_NE(message.find("those that can: cosformer"), std::string::npos) << name << ": " << message;
  }
  const AttentionConfig decaying = config_of({"model.attention=cosformer_plus", "attention.decay=true"});
  EXPECT_NE(message_of<UserError>([&] { CrossAttention(small_heads(), decaying); }).find("attention.decay"),
            std::string::npos);
  CrossAttention(small_heads(), cross_attention_config(decaying));
}

TEST(CrossAttention, MaskedSourceEqualsShorterSource) {
  for (const char* name : {"cosformer", "cosformer_plus", "softmax", "linear"}) {
    at::manual_seed(3);
    CrossAttention cross(small_heads(), cross_attention_config(config_of({std::string("model.attention=") + name})));
    cross.to(at::kDouble);
    const at::Tensor x = at::randn({2, 7, 12}, at::kDouble), source = at::randn({2, 9, 12}, at::kDouble);
    const at::Tensor mask = at::arange(9).unsqueeze(0).lt(at::tensor({5, 5}).unsqueeze(1));
    EXPECT_LT(difference(cross.forward(x, source, mask), cross.forward(x, source.narrow(1, 0, 5), {})), kTolerance);
  }
}

TEST(CrossAttention, GradientsReachBothSequencesAndEveryWeight) {
  at::manual_seed(4);
  CrossAttention cross(small_heads(), cross_attention_config(config_of({"model.attention=cosformer_plus"})));
  const at::Tensor x = at::randn({2, 7, 12}).requires_grad_(), source = at::randn({2, 9, 12}).requires_grad_();
  cross.forward(x, source, {}).square().sum().backward();
  for (const at::Tensor& tensor : {x, source}) EXPECT_GT(tensor.grad().abs().max().item<float>(), 0);
  for (const auto& item : cross.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << item.key();
  }
}

}  // namespace
}  // namespace cosformer::nn
