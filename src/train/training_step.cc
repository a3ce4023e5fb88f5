#include "train/training_step.h"

#include <utility>

#include <ATen/ATen.h>

#include "runs/device.h"

namespace cosformer::train {

// A well-mixed function of both (the finaliser of SplitMix64).
std::uint64_t step_seed(std::int64_t seed, std::int64_t step) {
  std::uint64_t x = static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(step);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

TrainingStep::TrainingStep(StepGraph::Step loss, AdamW& optimizer, FlatParameters& parameters,
                           const runs::TrainConfig& config, const StepOptions& options)
    : loss_(std::move(loss)), optimizer_(optimizer), parameters_(parameters), config_(config), options_(options) {
  if (StepGraph::available(options.device) && config.graph && config.accumulate == 1 && options.is_always_the_same) {
    graph_ = std::make_unique<StepGraph>();
  }
}

at::Tensor TrainingStep::forward_backward(const StepInputs& inputs) {
  at::Tensor loss;
  {
    const runs::AutocastScope autocast(options_.device, options_.bfloat16);
    loss = loss_(inputs);
  }
  (config_.accumulate == 1 ? loss : loss / static_cast<double>(config_.accumulate)).backward();
  return loss.detach();
}

void TrainingStep::finish() {
  at::NoGradGuard no_grad;
  if (config_.clip > 0) parameters_.clip(config_.clip);
  optimizer_.step();
  parameters_.zero_gradients();
}

at::Tensor TrainingStep::whole_step(const StepInputs& inputs) {
  const at::Tensor loss = forward_backward(inputs);
  finish();
  return loss;
}

at::Tensor TrainingStep::run(std::int64_t step, double learning_rate, const std::vector<StepInputs>& batches) {
  at::manual_seed(step_seed(config_.seed, step));
  optimizer_.prepare(step, learning_rate);
  if (graph_) return graph_->run(batches.front(), [this](const StepInputs& inputs) { return whole_step(inputs); });
  at::Tensor sum;
  for (const StepInputs& inputs : batches) {
    const at::Tensor loss = forward_backward(inputs);
    sum = sum.defined() ? sum + loss : loss;
  }
  finish();
  return batches.size() == 1 ? sum : sum / static_cast<double>(batches.size());
}

}  // namespace cosformer::train
