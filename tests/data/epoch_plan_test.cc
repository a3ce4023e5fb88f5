// Plans of epochs: complete, repeatable, within their limits and with little padding.
#include "data/batches/epoch_plan.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"

namespace cosformer::data {
namespace {

using Batches = std::vector<std::vector<std::uint32_t>>;

std::vector<Lengths> random_lengths(std::size_t size, bool pairs = false) {
  std::mt19937 random(5);
  std::vector<Lengths> lengths;
  for (std::size_t i = 0; i < size; ++i) {
    lengths.push_back(
        {static_cast<std::int64_t>(1 + random() % 2000), pairs ? static_cast<std::int64_t>(1 + random() % 2000) : 0});
  }
  return lengths;
}

Batches batches_of(const EpochPlan& plan) {
  Batches batches;
  for (std::size_t i = 0; i < plan.batches(); ++i) batches.emplace_back(plan.batch(i).begin(), plan.batch(i).end());
  return batches;
}

std::vector<std::uint32_t> flattened(const Batches& batches) {
  std::vector<std::uint32_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

void expect_each_once(const Batches& batches, std::size_t size) {
  std::vector<std::uint32_t> all = flattened(batches), expected(size);
  std::sort(all.begin(), all.end());
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(all, expected);
}

TEST(EpochPlan, EveryExampleOnceWhateverTheOptions) {
  const auto lengths = random_lengths(1003, true);
  for (const bool shuffled : {false, true}) {
    for (const bool bucket : {false, true}) {
      for (const Layout layout : {Layout::kPadded, Layout::kPacked}) {
        for (const std::int64_t budget : {0, 9000}) {
          BatchOptions options;
          options.shuffle = shuffled;
          options.bucket = bucket;
          options.layout = layout;
          options.token_budget = budget;
          options.pool_batches = 3;
          expect_each_once(batches_of(plan_epoch(lengths, options, 1, 2)), lengths.size());
        }
      }
    }
  }
}

TEST(EpochPlan, IsAFunctionOfSeedAndEpoch) {
  const auto lengths = random_lengths(500);
  const BatchOptions options;
  const Batches plan = batches_of(plan_epoch(lengths, options, 1, 2));
  EXPECT_EQ(batches_of(plan_epoch(lengths, options, 1, 2)), plan);
  EXPECT_NE(batches_of(plan_epoch(lengths, options, 1, 3)), plan);
  EXPECT_NE(batches_of(plan_epoch(lengths, options, 2, 2)), plan);
}

// The order is part of what makes a resumed run exact: these numbers must never change.
TEST(EpochPlan, OrderIsPinned) {
  const std::vector<Lengths> lengths(10, {1, 0});
  BatchOptions options;
  options.batch_size = 4;
  EXPECT_EQ(batches_of(plan_epoch(lengths, options, 7, 1)), (Batches{{4, 1, 2, 3}, {5, 6}, {9, 0, 8, 7}}));
}

TEST(EpochPlan, WithoutShufflingAndBucketsTheOrderStays) {
  const auto lengths = random_lengths(10);
  BatchOptions options;
  options.shuffle = options.bucket = false;
  options.batch_size = 4;
  EXPECT_EQ(batches_of(plan_epoch(lengths, options, 1, 1)), (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  options.drop_last = true;
  EXPECT_EQ(batches_of(plan_epoch(lengths, options, 1, 1)), (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(EpochPlan, BucketsKeepPaddingSmall) {
  const auto lengths = random_lengths(20000);
  BatchOptions options;
  const EpochPlan bucketed = plan_epoch(lengths, options, 1, 0);
  std::int64_t real = 0;
  for (const Lengths& length : lengths) real += length.first;
  EXPECT_EQ(bucketed.real_elements(), real);
  const auto overhead = [](const EpochPlan& plan) {
    return static_cast<double>(plan.computed_elements()) / static_cast<double>(plan.real_elements()) - 1.0;
  };
  EXPECT_LT(overhead(bucketed), 0.03);
  options.bucket = false;
  EXPECT_GT(overhead(plan_epoch(lengths, options, 1, 0)), 0.5) << "what the buckets save";
  options.layout = Layout::kPacked;
  EXPECT_EQ(overhead(plan_epoch(lengths, options, 1, 0)), 0.0);
}

TEST(EpochPlan, BatchesDifferFromEpochToEpoch) {
  const auto lengths = random_lengths(20000);
  const BatchOptions options;
  // Neighbours of one epoch are rarely neighbours in the next, in spite of the sorting.
  const auto partners = [&](std::uint64_t epoch) {
    std::vector<std::size_t> batch_of(lengths.size());
    const EpochPlan plan = plan_epoch(lengths, options, 1, epoch);
    for (std::size_t b = 0; b < plan.batches(); ++b) {
      for (const std::uint32_t example : plan.batch(b)) batch_of[example] = b;
    }
    return batch_of;
  };
  const auto first = partners(0), second = partners(1);
  std::size_t together = 0, both = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::size_t j = i + 1; j < std::min(lengths.size(), i + 200); ++j) {
      if (first[i] != first[j]) continue;
      ++together;
      both += second[i] == second[j] ? 1 : 0;
    }
  }
  ASSERT_GT(together, 1000U);
  EXPECT_LT(static_cast<double>(both), 0.3 * static_cast<double>(together));
}

TEST(EpochPlan, TokenBudgetHolds) {
  const auto lengths = random_lengths(3000, true);
  BatchOptions options;
  options.batch_size = 0;
  options.token_budget = 20000;
  options.width_multiple = 64;
  options.max_length = 1500;
  for (const Layout layout : {Layout::kPadded, Layout::kPacked}) {
    options.layout = layout;
    const Batches batches = batches_of(plan_epoch(lengths, options, 3, 0));
    std::int64_t computed = 0;
    for (const auto& batch : batches) {
      std::int64_t widest = 0, widest_second = 0, sum = 0;
      for (const std::uint32_t i : batch) {
        const std::int64_t a = std::min<std::int64_t>(lengths[i].first, 1500),
                           b = std::min<std::int64_t>(lengths[i].second, 1500);
        widest = std::max(widest, (a + 63) / 64 * 64);
        widest_second = std::max(widest_second, (b + 63) / 64 * 64);
        sum += a + b;
      }
      const std::int64_t cost =
          layout == Layout::kPacked ? sum : (widest + widest_second) * static_cast<std::int64_t>(batch.size());
      EXPECT_LE(cost, 20000);
      computed += cost;
    }
    EXPECT_EQ(plan_epoch(lengths, options, 3, 0).computed_elements(), computed);
    EXPECT_LT(batches.size(), 450U) << "batches are filled";
  }
  options.token_budget = 10;
  for (const auto& batch : batches_of(plan_epoch(lengths, options, 3, 0))) {
    ASSERT_EQ(batch.size(), 1U) << "what exceeds the budget by itself goes alone";
  }
}

TEST(EpochPlan, ImpossibleOptions) {
  using cosformer::testing::message_of;
  using ::testing::IsSubstring;
  const auto refusal = [](auto change) {
    BatchOptions options;
    change(options);
    return message_of<UserError>([&] { plan_epoch({}, options, 0, 0); });
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "a batch needs a limit", refusal([](auto& o) { o.batch_size = 0; }));
  EXPECT_PRED_FORMAT2(IsSubstring, "width_multiple at least 1", refusal([](auto& o) { o.width_multiple = 0; }));
  EXPECT_PRED_FORMAT2(IsSubstring, "expected a batch size", refusal([](auto& o) {
                        o.batch_size = 0;
                        o.token_budget = 5;
                        o.drop_last = true;
                      }));
  EXPECT_EQ(plan_epoch({}, {}, 0, 0).batches(), 0U);
  EXPECT_THROW(plan_epoch({}, {}, 0, 0).batch(0), std::out_of_range);
}

}  // namespace
}  // namespace cosformer::data
