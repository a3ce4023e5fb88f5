// A layer with its bias, and rows of a table, against torch's own layers, gradients included.
#include "nn/linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/embedding.h>

#include "nn/embedding.h"
#include "ops/torch_compat.h"

namespace cosformer::nn {
namespace {

struct Results {
  at::Tensor y, dx, dweight, dbias;
};

template <class Forward>
Results run(torch::nn::Linear layer, const at::Tensor& input, const at::Tensor& dy, const Forward& forward) {
  const at::Tensor x = input.detach().clone().requires_grad_();
  layer->zero_grad();
  const at::Tensor y = forward(x);
  y.backward(dy.to(y.scalar_type()));
  return {y.detach(), x.grad(), layer->weight.grad().clone(),
          layer->bias.defined() ? layer->bias.grad().clone() : at::Tensor()};
}

void expect_near(const Results& got, const Results& expected, double tolerance) {
  const auto compare = [&](const at::Tensor& a, const at::Tensor& b, const char* name) {
    ASSERT_EQ(a.defined(), b.defined()) << name;
    if (!a.defined()) return;
    EXPECT_EQ(a.scalar_type(), b.scalar_type()) << name;
    ASSERT_EQ(a.sizes(), b.sizes()) << name;
    if (a.numel() == 0) return;
    const double size = b.abs().max().item<double>();
    EXPECT_LE((a - b).abs().max().item<double>(), tolerance * size) << name;
  };
  compare(got.y, expected.y, "y");
  compare(got.dx, expected.dx, "dx");
  compare(got.dweight, expected.dweight, "dweight");
  compare(got.dbias, expected.dbias, "dbias");
}

TEST(Linear, IsTorchsLayer) {
  at::manual_seed(1);
  for (const bool bias : {true, false}) {
    torch::nn::Linear layer(torch::nn::LinearOptions(24, 17).bias(bias));
    for (const auto type : {at::kDouble, at::kFloat}) {
      layer->to(type);
      for (const std::vector<std::int64_t>& sizes :
           {std::vector<std::int64_t>{24}, std::vector<std::int64_t>{33, 24}, std::vector<std::int64_t>{5, 1'033, 24},
            std::vector<std::int64_t>{2, 3, 7, 24}, std::vector<std::int64_t>{0, 9, 24}}) {
        const at::Tensor x = at::randn(sizes, type);
        const at::Tensor dy = at::randn_like(layer->forward(x));
        const auto torchs = run(layer, x, dy, [&](const at::Tensor& from) { return layer->forward(from); });
        const auto ours = run(layer, x, dy, [&](const at::Tensor& from) { return linear(layer, from); });
        expect_near(ours, torchs, type == at::kDouble ? 1e-13 : 2e-6);
      }
    }
  }
}

TEST(Linear, RefusesWhatTorchRefuses) {
  torch::nn::Linear layer(4, 3);
  EXPECT_THROW(linear(layer, at::ones({2, 4}, at::kDouble)), std::exception);
  EXPECT_THROW(linear(layer, at::ones({2, 5})), std::exception);
}

// Products in low precision, parameters' gradients in the parameters' own.
TEST(Linear, TakesPartInAutocast) {
  at::manual_seed(2);
  torch::nn::Linear layer(64, 48);
  const at::Tensor x = at::randn({8, 40, 64}), dy = at::randn({8, 40, 48});
  const auto exact = run(layer, x, dy, [&](const at::Tensor& from) { return layer->forward(from); });
  ops::set_autocast(c10::DeviceType::CPU, true, at::kBFloat16);
  auto ours = run(layer, x, dy, [&](const at::Tensor& from) { return linear(layer, from); });
  ops::set_autocast(c10::DeviceType::CPU, false, at::kBFloat16);
  EXPECT_EQ(ours.y.scalar_type(), at::kBFloat16);
  ours.y = ours.y.to(at::kFloat);
  expect_near(ours, exact, 2e-2);
  EXPECT_GT((ours.y - exact.y).abs().max().item<double>(), 1e-5);  // it did round
}

TEST(Embedding, IsTorchsTable) {
  at::manual_seed(3);
  torch::nn::Embedding torchs(50, 12);
  const at::Tensor table = torchs->weight.detach().clone().requires_grad_();
  for (const auto type : {at::kLong, at::kInt}) {
    const at::Tensor ids = at::randint(50, {7, 31}, at::kLong).to(type), dy = at::randn({7, 31, 12});
    torchs->zero_grad();
    table.mutable_grad() = at::Tensor();
    const at::Tensor expected = torchs->forward(ids), got = embed(table, ids);
    EXPECT_TRUE(at::equal(got, expected));
    expected.backward(dy);
    got.backward(dy);
    EXPECT_TRUE(at::allclose(table.grad(), torchs->weight.grad(), 1e-5, 1e-6));
  }
}

// Of one shape and type in one pass, of others by torch's rules.
TEST(Embedding, AddedToTokens) {
  at::manual_seed(4);
  const at::Tensor table = at::randn({20, 6}).requires_grad_();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const bool for_all : {false, true}) {
      const at::Tensor x = at::randn({3, 9, 6}).to(type).requires_grad_();
      const at::Tensor ids = for_all ? at::randint(20, {9}, at::kLong) : at::randint(20, {3, 9}, at::kLong);
      const at::Tensor got = add_embedded(x, table, ids), expected = x + at::embedding(table, ids);
      ASSERT_EQ(got.scalar_type(), expected.scalar_type());
      EXPECT_TRUE(at::equal(got, expected));
      const at::Tensor dy = at::randn_like(got);
      const auto gradients = torch::autograd::grad({got}, {x, table}, {dy});
      const auto must = torch::autograd::grad({expected}, {x, table}, {dy});
      EXPECT_TRUE(at::equal(gradients[0], must[0]));
      EXPECT_TRUE(at::allclose(gradients[1], must[1], 1e-5, 1e-6));
    }
  }
}

// Positions that are not learned, tokens that are not.
TEST(Embedding, GradientsOnlyWhereTheyAreAskedFor) {
  at::manual_seed(5);
  const at::Tensor ids = at::randint(20, {3, 9}, at::kLong), dy = at::randn({3, 9, 6});
  const at::Tensor fixed = at::randn({20, 6}), x = at::randn({3, 9, 6}).requires_grad_();
  add_embedded(x, fixed, ids).backward(dy);
  EXPECT_TRUE(at::equal(x.grad(), dy));
  EXPECT_FALSE(fixed.grad().defined());
  const at::Tensor table = fixed.clone().requires_grad_(), plain = at::randn({3, 9, 6});
  add_embedded(plain, table, ids).backward(dy);
  EXPECT_TRUE(at::allclose(table.grad(), at::zeros({20, 6}).index_add(0, ids.flatten(), dy.flatten(0, 1))));
  EXPECT_FALSE(plain.grad().defined());
}

}  // namespace
}  // namespace cosformer::nn
