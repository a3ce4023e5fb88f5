// What is advised where a model is not better than a trivial rule.
#include "cli/train/floor_advice.h"

#include <gtest/gtest.h>

namespace cosformer::cli {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

std::string advice(const TrainingSeen& seen) {
  return floor_advice("40.0%", "most frequent class", "50.0%", seen);
}

TEST(FloorAdvice, FollowsFromHowTheTrainingWent) {
  TrainingSeen rising;
  rising.steps = rising.best_step = 300;
  rising.train_loss = rising.valid_loss = 1.0;
  rising.guessing_loss = 2.3;
  EXPECT_HAS(advice(rising), "the model (40.0%) is not better than a rule");
  EXPECT_HAS(advice(rising), "still getting better");
  EXPECT_LACKS(advice(rising), "train.lr");

  TrainingSeen by_heart = rising;
  by_heart.best_step = 20;
  by_heart.train_loss = 0.01;
  EXPECT_HAS(advice(by_heart), "by heart");
  EXPECT_LACKS(advice(by_heart), "more steps");

  TrainingSeen nothing = rising;
  nothing.best_step = 100;
  nothing.train_loss = nothing.valid_loss = 2.3;
  nothing.lr = 0.5;
  EXPECT_HAS(advice(nothing), "another train.lr (now 0.500)");
}

TEST(FloorAdvice, NamesOnlyWhatTheRunCanDo) {
  TrainingSeen seen;
  EXPECT_LACKS(advice(seen), "train.init");
  EXPECT_LACKS(advice(seen), "cosformer_plus");
  seen.reads_text = seen.is_plain = true;
  EXPECT_HAS(advice(seen), "train.init");
  EXPECT_HAS(advice(seen), "cosformer_plus");
  seen.has_initial_weights = true;
  EXPECT_LACKS(advice(seen), "train.init");
}

}  // namespace
}  // namespace cosformer::cli
