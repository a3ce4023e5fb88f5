// How long a training will still take: its steps, its evaluations, its checkpoints and the evaluations at its end, from
// what those before have taken. What has not been seen yet is guessed, and rather too long than too short.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/jobs/job.h"

namespace cosformer::train {

// What is still to be done, as the settings and the data have it.
struct TimePlan {
  std::int64_t total_steps = 0;
  double steps_per_epoch = 1, tokens_per_step = 1;
  std::int64_t eval_every = 0, checkpoint_every = 0;  // as in the settings: 0: each epoch, with each evaluation
  double checkpoint_minutes = 0;
  // Job::work_of_evaluation of the validation part, and of all parts that are evaluated at the end.
  double evaluation_work = 0, final_work = 0;
  double checkpoint_seconds = 0;  // a guess, until one was written
};

// After Job::begin.
TimePlan time_plan(const runs::TrainConfig& config, Job& job, std::int64_t total_steps);

class TimeEstimate {
 public:
  // What has been done since the run's beginning.
  struct Counts {
    std::int64_t steps = 0, tokens = 0;
    double seconds = 0;  // spent on steps
  };

  TimeEstimate(const TimePlan& plan, const Counts& begin) : plan_(plan), counted_(begin) {}

  void count_to(const Counts& now);
  void add_evaluation(double seconds);
  void add_checkpoint(double seconds);

  // Seconds that are left after `step`; nothing until enough is known. The first steps are slower than the others and
  // tell nothing.
  std::optional<double> left(std::int64_t step) const;
  // Of them, those that are spent on steps.
  double left_for_steps(std::int64_t step) const;
  // "this will take about 3 min 20 s: ..."; once left() knows.
  std::string describe(std::int64_t step) const;

 private:
  struct Measured {
    double seconds = 0;
    std::int64_t count = 0;
    double mean_or(double guess) const { return count > 0 ? seconds / static_cast<double>(count) : guess; }
  };

  TimePlan plan_;
  Counts counted_;
  bool began_ = false;
  double step_seconds_ = 0;
  std::int64_t steps_ = 0, tokens_ = 0;
  Measured evaluations_, checkpoints_;
};

}  // namespace cosformer::train
