// One optimiser step: forward, backward, clipping, AdamW. Everything random in it follows from the seed and the step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/adamw.h"
#include "train/device_batch.h"
#include "train/step_graph.h"

namespace cosformer::train {

struct StepOptions {
  at::Device device = at::kCPU;
  bool bfloat16 = false;
  std::int64_t image_width = 0, image_height = 0;  // of sequences that are images; for mirroring
};

// The seed of a step's dropout and mirroring.
std::uint64_t step_seed(std::int64_t seed, std::int64_t step);

class TrainingStep {
 public:
  TrainingStep(models::Classifier& model, AdamW& optimizer, FlatParameters& parameters, const TrainConfig& config,
               const StepOptions& options);

  // Step number `step` (from 1) on `batches`, whose gradients are averaged. Returns the mean loss, a scalar on the
  // device that nobody has waited for.
  at::Tensor run(std::int64_t step, double learning_rate, const std::vector<DeviceBatch>& batches);

  // A batch as the step wants it. Where steps are captured in graphs, batches cut by a token budget are filled up, so
  // that there are as many shapes as widths.
  DeviceBatch prepare(const data::Batch& batch) const;

 private:
  at::Tensor forward_backward(const DeviceBatch& batch);
  at::Tensor whole_step(const DeviceBatch& batch);
  void finish();

  models::Classifier& model_;
  AdamW& optimizer_;
  FlatParameters& parameters_;
  TrainConfig config_;
  StepOptions options_;
  std::unique_ptr<StepGraph> graph_;  // null: every step is run as it is
};

}  // namespace cosformer::train
