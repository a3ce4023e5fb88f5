// The learning rate as a function of the step.
#pragma once

#include <cstdint>
#include <string>

namespace cosformer::train {

struct Schedule {
  std::string kind;  // one of runs::schedule_names()
  double peak = 0, final = 0;
  std::int64_t warmup = 0, steps = 0;
  // Of a run that was continued: the step after which this schedule begins, and the rate of that step, from which its
  // warm-up rises. `warmup` and `steps` count from there.
  std::int64_t begin = 0;
  double from = 0;

  // Of step number `step`, counted from 1. All rise linearly from `from` over the warm-up. Then:
  //   constant   the peak
  //   linear     a line to `final` at the last step
  //   cosine     half a cosine to `final` at the last step
  //   rsqrt      peak · min(1, t/w) / √max(t, w), the Long Range Arena's: `peak` is its base, not its maximum
  double at(std::int64_t step) const;
};

}  // namespace cosformer::train
