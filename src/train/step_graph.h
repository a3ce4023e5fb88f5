// A training step captured once as a CUDA graph and replayed: small models spend more time launching than computing.
#pragma once

#include <functional>
#include <memory>

#include "train/device_batch.h"

namespace cosformer::train {

class StepGraph {
 public:
  using Step = std::function<at::Tensor(const DeviceBatch&)>;

  StepGraph();
  ~StepGraph();

  static bool available(at::Device device);

  // The first calls with a shape run `step` itself; once the same shapes have come a few times in a row they are
  // captured, and from then on batches of these shapes are copied in and replayed. Others run as they are. Returns the
  // loss as a tensor of its own.
  at::Tensor run(const DeviceBatch& batch, const Step& step);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cosformer::train
