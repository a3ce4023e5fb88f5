// What the dispatcher sees: keys, shapes on Meta, autocast, inference mode, refused second derivatives.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cosformer/attention.h"

namespace cosformer {
namespace {

TEST(Registration, BothOperatorsHaveTheirKeys) {
  for (const char* name : {"cosformer::attention", "cosformer::attention_with_state"}) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::Autograd, c10::DispatchKey::Meta}) {
      EXPECT_TRUE(op.hasKernelForDispatchKey(key)) << name << ' ' << key;
    }
  }
}

TEST(Registration, MetaKnowsTheShapes) {
  const auto meta = at::TensorOptions().device(at::kMeta).dtype(at::kBFloat16);
  const auto q = at::empty({2, 5, 3, 8}, meta), k = at::empty({2, 9, 3, 8}, meta), v = at::empty({2, 9, 3, 4}, meta);
  const auto out = attention(q, k, v);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({2, 5, 3, 4}));
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(out.is_meta());
}

TEST(Registration, InferenceModeGivesTheSameBits) {
  const auto q = at::randn({1, 10, 2, 8});
  const auto expected = attention(q, q, q);
  c10::InferenceMode inference;
  EXPECT_TRUE(at::equal(attention(q, q, q), expected));
}

TEST(Registration, AutocastRunsInItsLowPrecision) {
  const auto q = at::randn({1, 10, 2, 8});
  at::autocast::set_cpu_enabled(true);
  const auto out = attention(q, q, q);
  at::autocast::set_cpu_enabled(false);
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  const auto low = q.to(at::kBFloat16);
  EXPECT_TRUE(at::equal(out, attention(low, low, low)));
}

TEST(Registration, SecondDerivativesAreRefused) {
  const auto q = at::randn({1, 6, 1, 4}).requires_grad_();
  const auto out = attention(q, q, q);
  const auto dq = torch::autograd::grad({out.sum()}, {q}, {}, true, /*create_graph=*/true)[0];
  try {
    dq.sum().backward();
    FAIL() << "a second derivative was computed";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("double backward is not supported"), std::string::npos) << error.what();
  }
}

// Also where nothing asks for gradients: a result without its tangent would read as a derivative of zero.
TEST(Registration, ForwardModeDerivativesAreRefused) {
  const std::uint64_t level = torch::autograd::forward_ad::enter_dual_level();
  for (const bool with_gradient : {false, true}) {
    const at::Tensor primal = at::randn({1, 6, 1, 4}).requires_grad_(with_gradient);
    const at::Tensor q = at::_make_dual(primal, at::randn({1, 6, 1, 4}), static_cast<std::int64_t>(level));
    try {
      attention(q, q, q);
      ADD_FAILURE() << "a tangent was lost";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("jvp"), std::string::npos) << error.what();
    }
  }
  torch::autograd::forward_ad::exit_dual_level(level);
}

}  // namespace
}  // namespace cosformer
