// AdamW on flat parameters: torch's fused kernel where it exists, a few vector operations elsewhere.
#pragma once

#include <array>

#include "runs/train_config.h"
#include "train/optimiser/flat_parameters.h"

namespace cosformer::train {

class AdamW {
 public:
  AdamW(FlatParameters& parameters, const runs::TrainConfig& config);

  // What the next step needs and a captured graph cannot know: to be called before each step, outside of any capture.
  void prepare(std::int64_t step, double learning_rate);  // steps count from 1
  void step();

  // Its state, to be written and filled in place.
  nn::NamedTensors state() const;

 private:
  void step_by_vectors(std::size_t group);

  FlatParameters& parameters_;
  runs::TrainConfig config_;
  std::array<at::Tensor, 2> averages_, squares_;
  at::Tensor learning_rate_, step_count_;  // on the device; for the fused kernel
  std::int64_t step_ = 0;
  double rate_ = 0;
};

}  // namespace cosformer::train
