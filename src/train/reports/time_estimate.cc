#include "train/reports/time_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "base/progress.h"
#include "base/table.h"

namespace cosformer::train {
namespace {

// Enough to tell: some steps and some time, or much time.
constexpr std::int64_t kEnoughSteps = 3;
constexpr double kEnoughSeconds = 1, kMuchTime = 10;

}  // namespace

TimePlan time_plan(const runs::TrainConfig& c, Job& job, std::int64_t total_steps) {
  constexpr double kBytesPerSecond = 200e6, kBytesOfAWeight = 12;  // itself and two averages, to a slow disk
  TimePlan plan;
  plan.total_steps = total_steps;
  plan.steps_per_epoch = static_cast<double>(job.batches_in_first_epoch()) / static_cast<double>(c.accumulate);
  plan.tokens_per_step = job.tokens_of_an_epoch() / std::max(plan.steps_per_epoch, 1e-9);
  plan.eval_every = c.eval_every;
  plan.checkpoint_every = c.checkpoint_every;
  plan.checkpoint_minutes = c.checkpoint_minutes;
  plan.evaluation_work = job.work_of_evaluation(Part::kValid);
  plan.final_work = plan.evaluation_work + (job.has_part(Part::kTest) ? job.work_of_evaluation(Part::kTest) : 0);
  plan.checkpoint_seconds = static_cast<double>(job.parameter_count()) * kBytesOfAWeight / kBytesPerSecond;
  return plan;
}

void TimeEstimate::count_to(const Counts& now) {
  const Counts before = std::exchange(counted_, now);
  if (!std::exchange(began_, true)) return;
  step_seconds_ += now.seconds - before.seconds;
  steps_ += now.steps - before.steps;
  tokens_ += now.tokens - before.tokens;
}

void TimeEstimate::add_evaluation(double seconds) {
  evaluations_.seconds += seconds;
  ++evaluations_.count;
}

void TimeEstimate::add_checkpoint(double seconds) {
  checkpoints_.seconds += seconds;
  ++checkpoints_.count;
}

// By tokens, because the first batches may be of short texts.
double TimeEstimate::left_for_steps(std::int64_t step) const {
  const auto steps = static_cast<double>(plan_.total_steps - step);
  return steps * plan_.tokens_per_step * step_seconds_ / static_cast<double>(std::max<std::int64_t>(tokens_, 1));
}

std::optional<double> TimeEstimate::left(std::int64_t step) const {
  const bool knows = (steps_ >= kEnoughSteps && step_seconds_ >= kEnoughSeconds) || step_seconds_ >= kMuchTime;
  if (!knows || tokens_ == 0) return std::nullopt;
  const std::int64_t steps = plan_.total_steps - step;
  const double per_token = step_seconds_ / static_cast<double>(tokens_);
  const double evaluation = evaluations_.mean_or(plan_.evaluation_work * per_token);
  const auto intervals = [&](std::int64_t every) {
    return std::ceil(static_cast<double>(plan_.total_steps) / static_cast<double>(every)) -
           std::floor(static_cast<double>(step) / static_cast<double>(every));
  };
  const double evaluations = plan_.eval_every > 0
                                 ? intervals(plan_.eval_every)
                                 : std::ceil(static_cast<double>(steps) / std::max(plan_.steps_per_epoch, 1.0));
  // The parts at the end in the ratio of their work to the validation part's.
  const double at_the_end =
      plan_.evaluation_work > 0 ? evaluation * plan_.final_work / plan_.evaluation_work : evaluation;
  const double without_checkpoints = left_for_steps(step) + evaluations * evaluation + at_the_end;
  double checkpoints = plan_.checkpoint_every > 0 ? intervals(plan_.checkpoint_every) : evaluations;
  if (plan_.checkpoint_minutes > 0) checkpoints += without_checkpoints / 60 / plan_.checkpoint_minutes;
  return without_checkpoints + checkpoints * checkpoints_.mean_or(plan_.checkpoint_seconds);
}

std::string TimeEstimate::describe(std::int64_t step) const {
  const double on_steps = left_for_steps(step), all = left(step).value_or(on_steps);
  return fmt::format("this will take about {}: {} for {} steps, {} for evaluations and checkpoints", human_seconds(all),
                     human_seconds(on_steps), with_commas(plan_.total_steps - step), human_seconds(all - on_steps));
}

}  // namespace cosformer::train
