// Which states a prompt finds, and what is forgotten.
#include "serve/engine/prefix_cache.h"

#include <numeric>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cosformer::serve {
namespace {

Session session_of(std::int64_t bytes, bool with_logits) {
  Session session;
  session.state.layers.emplace_back();
  session.state.layers[0].mechanism.tensors = {at::zeros({bytes / 4})};
  if (with_logits) session.logits = at::zeros({1});
  return session;
}

std::vector<std::int32_t> numbers(std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(PrefixKeys, StandWhereATextIsCut) {
  const std::vector<PrefixKey> keys = prefix_keys(numbers(10), 4);
  std::vector<std::size_t> places;
  for (const PrefixKey& key : keys) places.push_back(key.tokens);
  EXPECT_EQ(places, (std::vector<std::size_t>{3, 7, 10}));  // the <eod> before it is the first of four
  EXPECT_EQ(prefix_keys(numbers(7), 4).size(), 2U);
  EXPECT_TRUE(prefix_keys({}, 4).empty());
}

TEST(PrefixKeys, FollowFromAllTokensBefore) {
  std::vector<std::int32_t> other = numbers(10);
  const std::vector<PrefixKey> keys = prefix_keys(other, 4);
  other[5] = 77;
  const std::vector<PrefixKey> changed = prefix_keys(other, 4);
  EXPECT_EQ(keys[0].hash, changed[0].hash);
  EXPECT_NE(keys[1].hash, changed[1].hash);
  EXPECT_NE(keys[2].hash, changed[2].hash);
}

TEST(PrefixCache, FindsTheLongestBeginning) {
  PrefixCache cache(1 << 20);
  const std::vector<PrefixKey> keys = prefix_keys(numbers(10), 4), longer = prefix_keys(numbers(30), 4);
  EXPECT_FALSE(cache.find(keys).has_value());
  cache.put(keys[0], session_of(64, false));
  cache.put(keys[1], session_of(64, false));
  EXPECT_EQ(cache.find(keys)->tokens, 7U);
  EXPECT_EQ(cache.find(longer)->tokens, 7U);
  cache.put(keys[2], session_of(64, true));
  EXPECT_EQ(cache.find(keys)->tokens, 10U);
  EXPECT_EQ(cache.find(longer)->tokens, 7U) << "the end of one prompt is no cut of a longer one";
}

TEST(PrefixCache, AWholePromptNeedsItsLogits) {
  PrefixCache cache(1 << 20);
  const std::vector<PrefixKey> keys = prefix_keys(numbers(7), 4);
  cache.put(keys[1], session_of(64, false));
  EXPECT_FALSE(cache.find(keys).has_value());
  cache.put(keys[1], session_of(64, true));
  EXPECT_EQ(cache.find(keys)->tokens, 7U);
  cache.put(keys[1], session_of(64, false));  // does not lose them
  EXPECT_EQ(cache.find(keys)->tokens, 7U);
  EXPECT_EQ(cache.size(), 1U);
}

TEST(PrefixCache, ForgetsWhatWasNotUsedForLongest) {
  const std::uint64_t each = bytes_of(session_of(4096, true));
  PrefixCache cache(3 * each);
  std::vector<std::vector<PrefixKey>> keys;
  for (std::int32_t at = 0; at < 4; ++at) keys.push_back(prefix_keys(std::vector<std::int32_t>{at}, 4));
  for (int at = 0; at < 3; ++at) cache.put(keys[static_cast<std::size_t>(at)].back(), session_of(4096, true));
  EXPECT_EQ(cache.bytes(), 3 * each);
  EXPECT_TRUE(cache.find(keys[0]).has_value());  // used
  cache.put(keys[3].back(), session_of(4096, true));
  EXPECT_TRUE(cache.find(keys[0]).has_value());
  EXPECT_FALSE(cache.find(keys[1]).has_value());
  EXPECT_EQ(cache.bytes(), 3 * each);
  cache.put(keys[1].back(), session_of(1 << 20, true));  // larger than everything
  EXPECT_FALSE(cache.find(keys[1]).has_value());
  EXPECT_EQ(cache.size(), 3U);
  cache.set_most_bytes(each);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_TRUE(cache.find(keys[3]).has_value() || cache.find(keys[0]).has_value());
}

}  // namespace
}  // namespace cosformer::serve
