// The norms against torch's own and against differences of their values.
#include "nn/norm.h"

#include <functional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/torch_compat.h"

namespace cosformer::nn {
namespace {

// Weights that are not ones and zeros.
void draw_parameters(Norm& norm) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& p : norm.parameters()) p.copy_(at::randn_like(p));
}

struct Gradients {
  at::Tensor x, weight, bias;
};

Gradients gradients_of(const at::Tensor& y, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                       const at::Tensor& bias) {
  y.backward(dy);
  return {x.grad(), weight.grad(), bias.defined() ? bias.grad() : at::Tensor()};
}

at::Tensor leaf(const at::Tensor& x) {
  return x.detach().clone().requires_grad_();
}

TEST(Norm, LayerIsTorchsBitByBit) {
  at::manual_seed(7);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const std::int64_t width : {1, 7, 128}) {
      SCOPED_TRACE(testing::Message() << type << " width " << width);
      Norm norm("layer", width);
      norm.to(type);
      draw_parameters(norm);
      const at::Tensor x = at::randn({3, 5, width}, type).requires_grad_(), x2 = leaf(x);
      const at::Tensor weight = leaf(norm.weight), bias = leaf(norm.bias);
      const at::Tensor y = norm.forward(x), expected = at::layer_norm(x2, {width}, weight, bias, 1e-6);
      EXPECT_TRUE(at::equal(y, expected));
      EXPECT_TRUE(at::equal(norm.forward_for_products(x), expected));
      const at::Tensor dy = at::randn_like(y);
      const Gradients got = gradients_of(y, dy, x, norm.weight, norm.bias),
                      wanted = gradients_of(expected, dy, x2, weight, bias);
      EXPECT_TRUE(at::equal(got.x, wanted.x));
      EXPECT_TRUE(at::equal(got.weight, wanted.weight));
      EXPECT_TRUE(at::equal(got.bias, wanted.bias));
    }
  }
}

at::Tensor rms_by_definition(const at::Tensor& x, const at::Tensor& weight) {
  return x * (x.square().mean(-1, true) + 1e-6).rsqrt() * weight;
}

TEST(Norm, RmsIsItsDefinitionWithGradients) {
  at::manual_seed(8);
  for (const std::int64_t width : {1, 6, 64}) {
    SCOPED_TRACE(testing::Message() << "width " << width);
    Norm norm("rms", width);
    norm.to(at::kDouble);
    draw_parameters(norm);
    const at::Tensor x = at::randn({2, 9, width}, at::kDouble).requires_grad_(), x2 = leaf(x);
    const at::Tensor weight = leaf(norm.weight);
    const at::Tensor y = norm.forward(x), expected = rms_by_definition(x2, weight);
    EXPECT_LT((y - expected).abs().max().item<double>(), 1e-14);
    const at::Tensor dy = at::randn_like(y);
    const Gradients got = gradients_of(y, dy, x, norm.weight, {}), wanted = gradients_of(expected, dy, x2, weight, {});
    EXPECT_LT((got.x - wanted.x).abs().max().item<double>(), 1e-12);
    EXPECT_LT((got.weight - wanted.weight).abs().max().item<double>(), 1e-12);
  }
}

// The numbers of float32 and of half precision are those of the composition that stood here before.
TEST(Norm, RmsKeepsTheTypeOfItsInput) {
  at::manual_seed(9);
  const at::Tensor weight = at::randn({16});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::Tensor x = (at::randn({4, 16}) * 300).to(type);  // squares beyond float16
    const at::Tensor y = rms_norm(x, weight);
    EXPECT_EQ(y.scalar_type(), type);
    EXPECT_TRUE(at::equal(y, rms_by_definition(x.to(at::kFloat), weight).to(type)));
  }
}

// d(Σ y dy) / dp by central differences, number after number.
at::Tensor by_differences(const std::function<at::Tensor()>& value, at::Tensor p) {
  const at::NoGradGuard no_grad;
  const double step = 1e-5;
  at::Tensor result = at::zeros_like(p), flat = p.view(-1), out = result.view(-1);
  for (std::int64_t i = 0; i < flat.size(0); ++i) {
    const double at_rest = flat[i].item<double>();
    flat[i].fill_(at_rest + step);
    const double above = value().item<double>();
    flat[i].fill_(at_rest - step);
    const double below = value().item<double>();
    flat[i].fill_(at_rest);
    out[i].fill_((above - below) / (2 * step));
  }
  return result;
}

TEST(Norm, GradientsAreTheSlopesOfItsValues) {
  at::manual_seed(10);
  for (const std::string kind : {"layer", "rms"}) {
    SCOPED_TRACE(kind);
    Norm norm(kind, 5);
    norm.to(at::kDouble);
    draw_parameters(norm);
    const at::Tensor x = at::randn({4, 5}, at::kDouble).requires_grad_(), dy = at::randn({4, 5}, at::kDouble);
    const auto value = [&] { return (norm.forward(x) * dy).sum(); };
    value().backward();
    EXPECT_LT((x.grad() - by_differences(value, x.detach())).abs().max().item<double>(), 1e-7);
    for (const at::Tensor& p : norm.parameters()) {
      EXPECT_LT((p.grad() - by_differences(value, p.detach())).abs().max().item<double>(), 1e-7);
    }
  }
}

// On a CPU autocast leaves the norms as they are.
TEST(Norm, IsTorchsUnderAutocastOnTheCpu) {
  at::manual_seed(11);
  Norm norm("layer", 32);
  draw_parameters(norm);
  const at::Tensor x = at::randn({6, 32});
  ops::set_autocast(c10::DeviceType::CPU, true, at::kBFloat16);
  const at::Tensor expected = at::layer_norm(x, {32}, norm.weight, norm.bias, 1e-6);
  const at::Tensor y = norm.forward(x), for_products = norm.forward_for_products(x);
  ops::set_autocast(c10::DeviceType::CPU, false, at::kBFloat16);
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(y, expected));
  EXPECT_TRUE(at::equal(for_products, expected));
}

}  // namespace
}  // namespace cosformer::nn
