// The end of a training whose loss or weights are no longer finite: what happened, where, and what to try.
#pragma once

#include <cstdint>
#include <string>

#include "runs/train_config.h"

namespace cosformer::train {

struct Diverged {
  std::string what;  // "the loss is nan"
  std::string run;
  const runs::TrainConfig& config;
  bool bfloat16 = false;
  std::int64_t step = 0;
  std::string places;  // "the examples 3, 5"
};

[[noreturn]] void throw_diverged(const Diverged& diverged);  // a Failure

}  // namespace cosformer::train
