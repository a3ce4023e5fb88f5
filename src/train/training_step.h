// One optimiser step: forward, backward, clipping, AdamW. Everything random in it follows from the seed and the step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "train/optimiser/adamw.h"
#include "train/step_graph.h"

namespace cosformer::train {

struct StepOptions {
  at::Device device = at::kCPU;
  bool bfloat16 = false;
  bool is_always_the_same = true;  // every step is the same program: it may be captured
};

// The seed of a step's dropout and mirroring.
std::uint64_t step_seed(std::int64_t seed, std::int64_t step);

class TrainingStep {
 public:
  // `loss` gives the mean loss of a batch; it is called in the autocast scope of the options.
  TrainingStep(StepGraph::Step loss, AdamW& optimizer, FlatParameters& parameters, const runs::TrainConfig& config,
               const StepOptions& options);

  // Step number `step` (from 1) on `batches`, whose gradients are averaged. Returns the mean loss, a scalar on the
  // device that nobody has waited for.
  at::Tensor run(std::int64_t step, double learning_rate, const std::vector<StepInputs>& batches);

  // Whether steps become graphs, one for each shape of batch.
  bool is_captured() const { return graph_ != nullptr; }

 private:
  at::Tensor forward_backward(const StepInputs& inputs);
  at::Tensor whole_step(const StepInputs& inputs);
  void finish();

  StepGraph::Step loss_;
  AdamW& optimizer_;
  FlatParameters& parameters_;
  runs::TrainConfig config_;
  StepOptions options_;
  std::unique_ptr<StepGraph> graph_;  // null: every step is run as it is
};

}  // namespace cosformer::train
