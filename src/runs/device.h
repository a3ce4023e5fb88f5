// Where a model runs and in which precision, and the scope in which torch's autocast does it.
#pragma once

#include <ATen/ATen.h>

#include "runs/train_config.h"

namespace cosformer::runs {

// Throws UserError when a GPU is asked for and there is none.
at::Device device_of(const TrainConfig& config);

// Whether matrix products and attention run in bfloat16.
bool uses_bfloat16(const TrainConfig& config, at::Device device);

// bfloat16 autocast for its lifetime, or nothing.
class AutocastScope {
 public:
  AutocastScope(at::Device device, bool bfloat16);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  at::Device device_;
  bool active_;
};

}  // namespace cosformer::runs
