// Our optimiser on flat parameters beside torch's own, tensor by tensor.
#include "train/optimiser/adamw.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/adamw.h>

namespace cosformer::train {
namespace {

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(7, 5));
    second = register_module("second", torch::nn::Linear(5, 3));
  }
  at::Tensor loss(const at::Tensor& x) { return second(first(x).tanh()).square().sum(); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

TEST(AdamW, IsTorchsWithDecayOnMatricesOnly) {
  at::manual_seed(1);
  Net ours, theirs;
  {
    at::NoGradGuard no_grad;
    for (std::size_t at = 0; at < ours.parameters().size(); ++at) {
      theirs.parameters()[at].copy_(ours.parameters()[at]);
    }
  }
  runs::TrainConfig config;
  config.beta1 = 0.8;
  config.beta2 = 0.95;
  config.weight_decay = 0.3;
  FlatParameters flat(ours);
  AdamW optimizer(flat, config);
  using Group = torch::optim::OptimizerParamGroup;
  const auto options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(0.01).betas({0.8, 0.95}).eps(config.adam_eps).weight_decay(decay));
  };
  torch::optim::AdamW reference(std::vector<Group>{Group({theirs.first->weight, theirs.second->weight}, options(0.3)),
                                                   Group({theirs.first->bias, theirs.second->bias}, options(0))},
                                torch::optim::AdamWOptions(0.01));
  for (std::int64_t step = 1; step <= 20; ++step) {
    const at::Tensor x = at::randn({4, 7});
    ours.loss(x).backward();
    optimizer.prepare(step, 0.01);
    optimizer.step();
    flat.zero_gradients();
    reference.zero_grad();
    theirs.loss(x).backward();
    reference.step();
  }
  for (std::size_t at = 0; at < ours.parameters().size(); ++at) {
    EXPECT_LT((ours.parameters()[at] - theirs.parameters()[at]).abs().max().item<double>(), 1e-5) << at;
  }
}

TEST(AdamW, RatesScaleTheStepOfEachParameter) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({4, 7});
  const auto step = [&](const std::function<double(const std::string&)>& rate_of) {
    at::manual_seed(3);
    Net net;
    FlatParameters flat(net);
    if (rate_of) flat.set_rates(rate_of);
    AdamW optimizer(flat, {});
    std::vector<at::Tensor> moved;
    for (const at::Tensor& p : net.parameters()) moved.push_back(p.detach().clone());
    net.loss(x).backward();
    optimizer.prepare(1, 0.01);
    optimizer.step();
    for (std::size_t at = 0; at < moved.size(); ++at) moved[at] = net.parameters()[at].detach() - moved[at];
    return moved;
  };
  const std::vector<at::Tensor> full = step({}),
                                scaled = step([](const std::string&name) {
                                  return name.starts_with("first") ? 0.25 : name == "second.weight" ? 1.0 : 0.0;
                                });
  for (std::size_t at = 0; at < full.size(); ++at) {
    const double rate = at < 2 ? 0.25 : at == 2 ? 1.0 : 0.0;
    EXPECT_TRUE(at::allclose(scaled[at], rate * full[at], 1e-3, 1e-7)) << at;
  }
}

TEST(FlatParameters, ClipScalesTheWholeGradient) {
  Net net;
  FlatParameters flat(net);
  net.loss(at::randn({4, 7})).backward();
  std::vector<at::Tensor> before;
  double squares = 0;
  for (const at::Tensor& p : net.parameters()) {
    before.push_back(p.grad().clone());
    squares += p.grad().square().sum().item<double>();
  }
  const double norm = std::sqrt(squares);
  EXPECT_NEAR(flat.clip(norm / 4).item<double>(), norm, 1e-4 * norm);
  for (std::size_t at = 0; at < before.size(); ++at) {
    EXPECT_TRUE(at::allclose(net.parameters()[at].grad(), before[at] / 4, 1e-4, 1e-7));
  }
  flat.zero_gradients();
  EXPECT_EQ(net.parameters()[0].grad().abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace cosformer::train
