#include "train/optimiser/adamw.h"

#include <cmath>

#include <ATen/ATen.h>
#include <torch/version.h>

namespace cosformer::train {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
constexpr bool kHasFusedKernel = true;
#else
constexpr bool kHasFusedKernel = false;
#endif

}  // namespace

AdamW::AdamW(FlatParameters& parameters, const runs::TrainConfig& config) : parameters_(parameters), config_(config) {
  for (std::size_t group = 0; group < averages_.size(); ++group) {
    averages_[group] = at::zeros_like(parameters.groups()[group].values);
    squares_[group] = at::zeros_like(parameters.groups()[group].values);
  }
  const auto options = averages_[0].options().requires_grad(false);
  learning_rate_ = at::zeros({}, options);
  step_count_ = at::zeros({}, options);
}

void AdamW::prepare(std::int64_t step, double learning_rate) {
  step_ = step;
  rate_ = learning_rate;
  if (kHasFusedKernel) {
    learning_rate_.fill_(learning_rate);
    step_count_.fill_(static_cast<double>(step));
  }
}

void AdamW::step() {
  at::NoGradGuard no_grad;
  for (std::size_t number = 0; number < averages_.size(); ++number) {
    const at::Tensor& rates = parameters_.groups()[number].rates;
    const at::Tensor before = rates.defined() ? parameters_.groups()[number].values.clone() : at::Tensor();
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    const FlatParameters::Group& group = parameters_.groups()[number];
    if (group.values.numel() == 0) continue;
    at::_fused_adamw_({group.values}, {group.gradients}, {averages_[number]}, {squares_[number]}, {}, {step_count_},
                      learning_rate_, config_.beta1, config_.beta2, group.decays ? config_.weight_decay : 0.0,
                      config_.adam_eps, /*amsgrad=*/false, /*maximize=*/false);
#else
    step_by_vectors(number);
#endif
    if (rates.defined()) {
      const at::Tensor& values = parameters_.groups()[number].values;
      values.copy_(before.lerp(values, rates));
    }
  }
}

void AdamW::step_by_vectors(std::size_t number) {
  const FlatParameters::Group& group = parameters_.groups()[number];
  const auto t = static_cast<double>(step_);
  const double first = 1 - std::pow(config_.beta1, t), second = 1 - std::pow(config_.beta2, t);
  averages_[number].mul_(config_.beta1).add_(group.gradients, 1 - config_.beta1);
  squares_[number].mul_(config_.beta2).addcmul_(group.gradients, group.gradients, 1 - config_.beta2);
  if (group.decays) group.values.mul_(1 - rate_ * config_.weight_decay);
  const at::Tensor divisor = squares_[number].sqrt().div_(std::sqrt(second)).add_(config_.adam_eps);
  group.values.addcdiv_(averages_[number], divisor, -rate_ / first);
}

nn::NamedTensors AdamW::state() const {
  nn::NamedTensors tensors;
  for (std::size_t group = 0; group < averages_.size(); ++group) {
    for (auto& part : parameters_.named_parts(group, averages_[group], "average")) tensors.push_back(std::move(part));
    for (auto& part : parameters_.named_parts(group, squares_[group], "square")) tensors.push_back(std::move(part));
  }
  return tensors;
}

}  // namespace cosformer::train
