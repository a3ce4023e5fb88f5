#include "train/optimiser/schedule.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cosformer::train {
namespace {

TEST(Schedule, RisesAndFallsAsPublished) {
  const Schedule cosine{"cosine", 2.0, 0.5, 10, 110};
  EXPECT_DOUBLE_EQ(cosine.at(1), 0.2);
  EXPECT_DOUBLE_EQ(cosine.at(10), 2.0);
  EXPECT_NEAR(cosine.at(60), 1.25, 1e-12);
  EXPECT_DOUBLE_EQ(cosine.at(110), 0.5);
  const Schedule linear{"linear", 2.0, 0, 0, 100};
  EXPECT_DOUBLE_EQ(linear.at(25), 1.5);
  EXPECT_DOUBLE_EQ(linear.at(100), 0);
  const Schedule constant{"constant", 2.0, 0, 4, 100};
  EXPECT_DOUBLE_EQ(constant.at(2), 1.0);
  EXPECT_DOUBLE_EQ(constant.at(99), 2.0);
  // base · min(1, t/w) / √max(t, w)
  const Schedule rsqrt{"rsqrt", 0.05, 0, 1000, 5000};
  EXPECT_DOUBLE_EQ(rsqrt.at(500), 0.05 * 0.5 / std::sqrt(1000.0));
  EXPECT_DOUBLE_EQ(rsqrt.at(4000), 0.05 / std::sqrt(4000.0));
}

}  // namespace
}  // namespace cosformer::train
