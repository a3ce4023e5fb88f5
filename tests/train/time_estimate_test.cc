// How long a training will take, told before it has been taken.
#include "train/reports/time_estimate.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace cosformer::train {
namespace {

struct Simulated {
  double step = 0.1, evaluation = 30, checkpoint = 0.5;
  double first_step = 2;  // more for the first one
  std::int64_t steps = 1000, eval_every = 100;
};

// The first estimate beside what is then still to come.
double first_ratio(const Simulated& s, TimePlan plan, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> share(0.2, 1.8);  // of texts of changing length
  plan.total_steps = s.steps;
  plan.eval_every = s.eval_every;
  TimeEstimate estimate(plan, {});
  TimeEstimate::Counts now;
  double first = -1, at_first = 0, clock = 0;
  for (std::int64_t step = 1; step <= s.steps; ++step) {
    const double length = share(random);
    const double took = s.step * length + (step == 1 ? s.first_step : 0);
    now = {step, now.tokens + std::llround(1000 * length), now.seconds + took};
    clock += took;
    estimate.count_to(now);
    if (const auto left = estimate.left(step); left && first < 0) {
      first = *left;
      at_first = clock;
    }
    if (step % s.eval_every == 0 || step == s.steps) {
      clock += s.evaluation + s.checkpoint;
      estimate.add_evaluation(s.evaluation);
      estimate.add_checkpoint(s.checkpoint);
    }
  }
  clock += s.evaluation * plan.final_work / plan.evaluation_work;
  return first / (clock - at_first);
}

// An evaluation of the work of 750 steps' reading, as the steps then turn out.
TimePlan plan_of(const Simulated& s) {
  TimePlan plan;
  plan.tokens_per_step = 1000;
  plan.steps_per_epoch = 100;
  plan.evaluation_work = 1000 * s.evaluation / s.step;
  plan.final_work = 2 * plan.evaluation_work;
  plan.checkpoint_seconds = s.checkpoint;
  return plan;
}

TEST(TimeEstimate, TheFirstOneCountsEvaluationsCheckpointsAndTheEnd) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    for (const double step : {0.004, 0.1, 3.0}) {
      Simulated s;
      s.step = step;
      const double ratio = first_ratio(s, plan_of(s), seed);
      EXPECT_GT(ratio, 0.85);
      EXPECT_LT(ratio, 1.15);
    }
    // Once an evaluation for each epoch, as by default, and a tenth as long as its steps.
    Simulated s;
    s.evaluation = 1;
    TimePlan plan = plan_of(s);
    EXPECT_NEAR(first_ratio(s, plan, seed), 1, 0.15);
  }
}

TEST(TimeEstimate, SaysNothingBeforeItKnows) {
  TimePlan plan;
  plan.total_steps = 100;
  plan.tokens_per_step = 10;
  TimeEstimate estimate(plan, {});
  EXPECT_FALSE(estimate.left(0));
  estimate.count_to({1, 10, 20});  // the first step makes everything ready
  EXPECT_FALSE(estimate.left(1));
  estimate.count_to({2, 20, 20.5});
  EXPECT_FALSE(estimate.left(2));
  for (int step = 3; step <= 4; ++step) estimate.count_to({step, 10 * step, 20 + 0.5 * (step - 1)});
  ASSERT_TRUE(estimate.left(4));
  EXPECT_NEAR(estimate.left_for_steps(4), 48, 1e-9);
}

// What was spent before this process is no part of its speed.
TEST(TimeEstimate, GoesOnFromACheckpoint) {
  TimePlan plan;
  plan.total_steps = 100;
  plan.tokens_per_step = 10;
  TimeEstimate estimate(plan, {50, 500, 1000});
  for (int step = 51; step <= 55; ++step) estimate.count_to({step, 10 * step, 1000.0 + (step - 50)});
  EXPECT_NEAR(estimate.left_for_steps(55), 45, 1e-9);
}

}  // namespace
}  // namespace cosformer::train
