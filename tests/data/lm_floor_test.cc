// Counting tokens and pairs, against counts made by hand.
#include "data/baselines/lm_floor.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"

namespace cosformer::data {
namespace {

TEST(LmFloors, AreWhatCountingByHandGives) {
  const cosformer::testing::TemporaryDirectory folder;
  cosformer::testing::write_bytes(folder.file("train.txt"), "aabab");
  cosformer::testing::write_bytes(folder.file("valid.txt"), "abc");
  CorpusOptions options;
  options.train = {folder.file("train.txt")};
  options.valid = {folder.file("valid.txt")};
  options.documents = DocumentRule::kStream;
  options.cache_folder = folder.file("cache");
  const Corpus corpus = open_corpus(options, byte_tokenizer());
  const std::vector<LmFloor> floors = lm_floors(corpus.train, corpus.valid, *corpus.tokenizer);
  ASSERT_EQ(floors.size(), 2U);
  // Three a and two b among 5 tokens, 258 in the vocabulary.
  const double a = 4.0 / 263, b = 3.0 / 263, c = 1.0 / 263;
  EXPECT_NEAR(floors[0].nats, -std::log(a) - std::log(b) - std::log(c), 1e-12);
  // <eod> a: once, one kind. After a: a once, b twice, two kinds. After b: a once, one kind; c never.
  EXPECT_NEAR(floors[1].nats,
              -std::log((1 + 1 * a) / (1 + 1)) - std::log((2 + 2 * b) / (3 + 2)) - std::log((0 + 1 * c) / (1 + 1)),
              1e-12);
  EXPECT_THROW(lm_floors(corpus.train, corpus.test, *corpus.tokenizer), UserError);
  const std::vector<LmFloor> of_two = lm_floors(corpus.train, corpus.valid, *corpus.tokenizer, 2);
  EXPECT_NEAR(of_two[0].nats, -std::log(3.0 / 260) - 2 * std::log(1.0 / 260), 1e-12) << "the first two tokens only";
}

}  // namespace
}  // namespace cosformer::data
