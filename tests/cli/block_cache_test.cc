// What is kept of freed blocks stays near what was in use at once, whatever the sizes.
#include "cli/memory/block_cache.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace cosformer::cli {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

// Steps of a training whose batches have lengths of their own: tensors in proportion to the length, freed backwards.
TEST(BlockCache, MixedLengthsStayNearWhatIsInUse) {
  constexpr unsigned kSeed = 20;
  std::mt19937 random(kSeed);
  BlockCache cache;
  for (int step = 0; step < 200; ++step) {
    const std::size_t length = 16 * (1 + random() % 90);
    std::vector<BlockCache::Block> blocks;
    for (int tensor = 0; tensor < 24; ++tensor) {
      blocks.push_back(cache.take(length * 16 * 1024 * (1 + static_cast<std::size_t>(tensor) % 5)));
      std::memset(blocks.back().data, tensor, 64);
    }
    for (std::size_t at = 0; at < blocks.size(); ++at) {
      ASSERT_EQ(static_cast<std::size_t>(blocks[at].data[63]), at) << "a block was given twice; seed " << kSeed;
    }
    for (; !blocks.empty(); blocks.pop_back()) cache.give(blocks.back());
    const std::size_t most = cache.most_in_use();
    ASSERT_LE(cache.held(), most + std::max(most / 4, BlockCache::kLeastKept)) << "step " << step << ", seed " << kSeed;
  }
  EXPECT_EQ(cache.in_use(), 0U);
  cache.release();
  EXPECT_EQ(cache.held(), 0U);
}

TEST(BlockCache, TheSameSizesComeBackWithoutThatTheSystemIsAsked) {
  BlockCache cache;
  const BlockCache::Block first = cache.take(9 * kMegabyte), second = cache.take(3 * kMegabyte);
  cache.give(first);
  cache.give(second);
  EXPECT_EQ(cache.take(3 * kMegabyte - 1000).data, second.data);
  EXPECT_EQ(cache.take(9 * kMegabyte - 1000).data, first.data);
  EXPECT_EQ(cache.held(), cache.in_use());
  cache.give(first);
  cache.give(second);
}

TEST(BlockCache, ASmallTensorTakesNoLargeBlock) {
  BlockCache cache;
  cache.give(cache.take(64 * kMegabyte));
  const BlockCache::Block small = cache.take(2 * kMegabyte);
  EXPECT_LE(small.size, 3 * kMegabyte);
  cache.give(small);
}

TEST(BlockCache, WhatCannotBeIsRefused) {
  BlockCache cache;
  EXPECT_THROW(cache.take(SIZE_MAX - 5), std::bad_alloc);
  EXPECT_THROW(cache.take(std::size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(cache.in_use(), 0U);
}

}  // namespace
}  // namespace cosformer::cli
