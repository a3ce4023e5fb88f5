#include "train/training_step.h"

#include <ATen/ATen.h>

#include "nn/attention_traits.h"
#include "train/precision.h"

namespace cosformer::train {
namespace {

// Half of the images mirrored left to right.
at::Tensor mirrored(const at::Tensor& content, std::int64_t width, std::int64_t height) {
  const std::int64_t count = content.size(0);
  const at::Tensor images = content.view({count, height, width});
  const at::Tensor chosen = at::rand({count, 1, 1}, content.options().dtype(at::kFloat)).lt(0.5);
  return at::where(chosen, images.flip(2), images).view({count, height * width});
}

}  // namespace

// A well-mixed function of both (the finaliser of SplitMix64).
std::uint64_t step_seed(std::int64_t seed, std::int64_t step) {
  std::uint64_t x = static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(step);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

TrainingStep::TrainingStep(models::Classifier& model, AdamW& optimizer, FlatParameters& parameters,
                           const TrainConfig& config, const StepOptions& options)
    : model_(model), optimizer_(optimizer), parameters_(parameters), config_(config), options_(options) {
  const bool is_always_the_same = !nn::changes_while_training(model.config().attention);
  if (StepGraph::available(options.device) && config.graph && config.accumulate == 1 && is_always_the_same) {
    graph_ = std::make_unique<StepGraph>();
  }
}

DeviceBatch TrainingStep::prepare(const data::Batch& batch) const {
  const std::int64_t width = batch.first.width + batch.second.width;
  if (!graph_ || config_.token_budget == 0 || config_.batch_size > 0 || width == 0) {
    return to_device(batch, options_.device);
  }
  return to_device_filled(batch, options_.device, std::max<std::int64_t>(config_.token_budget / width, 1));
}

at::Tensor TrainingStep::forward_backward(const DeviceBatch& batch) {
  DeviceBatch input = batch;
  if (config_.flip && options_.image_width > 0) {
    input.first.content = mirrored(batch.first.content, options_.image_width, options_.image_height);
  }
  at::Tensor loss;
  {
    const AutocastScope autocast(options_.device, options_.bfloat16);
    loss = at::cross_entropy_loss(logits_of(model_, input).to(at::kFloat), input.labels, {}, at::Reduction::Mean,
                                  kNoLabel, config_.label_smoothing);
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

at::Tensor TrainingStep::whole_step(const DeviceBatch& batch) {
  const at::Tensor loss = forward_backward(batch);
  finish();
  return loss;
}

at::Tensor TrainingStep::run(std::int64_t step, double learning_rate, const std::vector<DeviceBatch>& batches) {
  at::manual_seed(step_seed(config_.seed, step));
  optimizer_.prepare(step, learning_rate);
  if (graph_) return graph_->run(batches.front(), [this](const DeviceBatch& batch) { return whole_step(batch); });
  at::Tensor sum;
  for (const DeviceBatch& batch : batches) {
    const at::Tensor loss = forward_backward(batch);
    sum = sum.defined() ? sum + loss : loss;
  }
  finish();
  return batches.size() == 1 ? sum : sum / static_cast<double>(batches.size());
}

}  // namespace cosformer::train
