// A training step captured once as a CUDA graph and replayed: small models spend more time launching than computing.
#pragma once

#include <functional>
#include <memory>

#include "train/inputs/step_inputs.h"

namespace cosformer::train {

class StepGraph {
 public:
  using Step = std::function<at::Tensor(const StepInputs&)>;

  StepGraph();
  ~StepGraph();

  static bool available(at::Device device);

  // The first inputs of a shape run `step` itself; then it is captured, and from then on inputs of that shape are
  // copied in and replayed. Each of the first few dozen shapes gets a graph of its own, so batches of few widths pay
  // best; later ones run as they are. Returns the loss as a tensor of its own.
  at::Tensor run(const StepInputs& inputs, const Step& step);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cosformer::train
