// Whether the emulated device does what a device does, and notices what a kernel does wrong.
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "defective_kernels.h"

namespace cosformer::kernels::cuda::testing {
namespace {

void expect_failure(cudaError_t status, const std::string& what) {
  EXPECT_EQ(status, cudaErrorLaunchFailure);
  EXPECT_NE(std::string(cudaGetErrorString(status)).find(what), std::string::npos) << cudaGetErrorString(status);
}

TEST(EmulatedDevice, SharedMemoryChangesHands) {
  std::vector<float> out(64);
  ASSERT_EQ(swap_warps(out.data(), true), cudaSuccess);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<float>(63 - i));
}

TEST(EmulatedDevice, BlocksWaitForEachOther) {
  float sum = 0;
  ASSERT_EQ(add_in_turn(&sum, true, true), cudaSuccess);
  EXPECT_EQ(sum, 6.0F);
}

TEST(EmulatedDevice, CopiesComeWhenTheyAreAwaited) {
  std::vector<float> from(128), to(128);
  std::iota(from.begin(), from.end(), 1.0F);
  ASSERT_EQ(copy_rows(from.data(), to.data(), true), cudaSuccess);
  EXPECT_EQ(from, to);
  ASSERT_EQ(copy_rows(from.data(), to.data(), false), cudaSuccess);
  for (const float x : to) EXPECT_TRUE(std::isnan(x));
}

TEST(EmulatedDevice, ProductsComeWhenTheyAreAwaited) {
  std::vector<float> out(128);
  ASSERT_EQ(multiply_ones(out.data(), true), cudaSuccess);
  for (const float x : out) EXPECT_EQ(x, 16.0F);
  ASSERT_EQ(multiply_ones(out.data(), false), cudaSuccess);
  for (const float x : out) EXPECT_TRUE(std::isnan(x));
}

TEST(EmulatedDevice, WaitingForEverIsToldWhere) {
  expect_failure(half_meets(), "32 in block 0: barrier 1, where 32 have arrived");
}

TEST(EmulatedDevice, LanesStayTogether) {
  expect_failure(lanes_part(), "lanes of a warp are at different instructions");
}

TEST(EmulatedDevice, SharedMemoryEnds) {
  EXPECT_EQ(store_at(240), cudaSuccess);
  expect_failure(store_at(256), "shared memory of 256 bytes accessed at 256");
  expect_failure(store_at(8), "misaligned");
}

#ifndef COSFORMER_EMULATED_RACES
TEST(EmulatedDevice, OperandsMayNotChange) {
  std::vector<float> out(128);
  expect_failure(multiply_changed(out.data()), "changed while its product was under way");
}
#else
// The race detector ends the program.
TEST(EmulatedDeviceDeathTest, OperandsMayNotChange) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<float> out(128);
  EXPECT_EXIT((void)multiply_changed(out.data()), ::testing::ExitedWithCode(66), "data race");
}

TEST(EmulatedDeviceDeathTest, RacesBetweenWarpsAreFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<float> out(64);
  EXPECT_EXIT((void)swap_warps(out.data(), false), ::testing::ExitedWithCode(66), "data race");
}

TEST(EmulatedDeviceDeathTest, RacesBetweenBlocksAreFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  float sum = 0;
  EXPECT_EXIT((void)add_in_turn(&sum, false, true), ::testing::ExitedWithCode(66), "data race");
  EXPECT_EXIT((void)add_in_turn(&sum, false, false), ::testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
