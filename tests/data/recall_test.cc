// Texts of the task recall: made of pairs and queries as the settings say, solvable by reading, the same for the same
// seeds; and what rules that bind nothing reach.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/baselines/recall_floor.h"
#include "data/tasks/recall/recall_text.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;

bool is_key(std::int32_t token, const RecallConfig& c) {
  return token >= c.first_key() && token < c.first_value();
}

// Settings that are possible, of every form.
RecallConfig random_config(std::mt19937_64& random) {
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  RecallConfig c;
  c.pairs = between(1, 40);
  c.least_pairs = between(0, c.pairs);
  c.queries = between(0, 3) == 0 ? between(1, 50) : 0;
  c.keys = c.pairs + between(0, 60);
  c.values = between(2, 90);
  c.fillers = between(1, 20);
  c.gaps = between(0, 1) == 0 ? "power" : "uniform";
  c.needle = between(0, 1) == 0;
  c.length = 4 * c.pairs + between(0, 3) * between(0, 100);
  require_possible(c);
  return c;
}

struct Drawn {
  RecallConfig config;
  RecallSeeds seeds;
  RecallPart part = RecallPart::kTrain;
  std::uint64_t number = 0;

  RecallText text() const { return recall_text(config, seeds, part, number); }
};

Drawn drawn(std::mt19937_64& random) {
  Drawn d{random_config(random), {random(), random()}, RecallPart::kTrain, random() >> 20};
  d.part = static_cast<RecallPart>(random() % 3);
  return d;
}

class RandomRecall : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::uint64_t seed = std::random_device{}();
    RecordProperty("seed", std::to_string(seed));
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    random.seed(seed);
  }
  std::mt19937_64 random;
};

// A reader that knows nothing but the definition: what stood behind a key when it came first is its value.
TEST_F(RandomRecall, AReaderThatRemembersAllIsAlwaysRight) {
  for (int round = 0; round < 300; ++round) {
    const Drawn d = drawn(random);
    const RecallConfig& c = d.config;
    const RecallText text = d.text();
    ASSERT_EQ(static_cast<std::int64_t>(text.tokens.size()), c.length) << describe(c);
    std::map<std::int32_t, std::size_t> seen;  // key → its first place
    std::size_t next_query = 0;
    for (std::size_t place = 0; place < text.tokens.size(); ++place) {
      const std::int32_t token = text.tokens[place];
      ASSERT_TRUE(token >= 0 && token < c.vocabulary());
      if (!is_key(token, c)) continue;
      ASSERT_LT(place + 1, text.tokens.size());
      EXPECT_GE(text.tokens[place + 1], c.first_value()) << "a key without a value behind it";
      if (seen.emplace(token, place).second) continue;
      ASSERT_LT(next_query, text.queries.size()) << "a key of a pair is there twice: " << in_words(text, c);
      const RecallQuery& query = text.queries[next_query++];
      EXPECT_EQ(query.place, static_cast<std::int64_t>(place));
      EXPECT_EQ(query.distance, static_cast<std::int64_t>(place - seen[token]));
      EXPECT_EQ(text.tokens[place + 1], text.tokens[seen[token] + 1]) << in_words(text, c);
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), text.pairs);
    EXPECT_EQ(next_query, text.queries.size());
  }
}

TEST_F(RandomRecall, NumbersAndPlacesAreAsTheSettingsSay) {
  for (int round = 0; round < 300; ++round) {
    const Drawn d = drawn(random);
    const RecallConfig& c = d.config;
    const RecallText text = d.text();
    EXPECT_GE(text.pairs, c.fewest_pairs());
    EXPECT_LE(text.pairs, c.pairs);
    const std::int64_t queries = c.queries == 0 ? text.pairs : std::min(c.queries, text.pairs);
    ASSERT_EQ(static_cast<std::int64_t>(text.queries.size()), queries);
    std::set<std::int32_t> asked;
    for (std::size_t at = 0; at < text.queries.size(); ++at) {
      const RecallQuery& query = text.queries[at];
      EXPECT_TRUE(asked.insert(text.tokens[static_cast<std::size_t>(query.place)]).second) << "asked twice";
      EXPECT_GE(query.place, c.needle ? c.length / 2 * 2 - 2 * queries : 2 * text.pairs);
      if (at > 0) {
        EXPECT_GE(query.place, text.queries[at - 1].place + 2);
      }
    }
    for (std::int64_t pair = 0; !c.needle && pair < text.pairs; ++pair) {
      EXPECT_TRUE(is_key(text.tokens[static_cast<std::size_t>(2 * pair)], c)) << "pairs begin the text";
    }
  }
}

TEST_F(RandomRecall, TheSameForTheSameSeedsAndAnotherOtherwise) {
  for (int round = 0; round < 50; ++round) {
    Drawn d = drawn(random);
    d.config.fillers = 1000;
    d.config.length += 64;  // no two are alike by chance
    const RecallText text = d.text();
    EXPECT_EQ(d.text().tokens, text.tokens);
    Drawn other = d;
    ++other.number;
    EXPECT_NE(other.text().tokens, text.tokens);
    other = d;
    ++other.seeds.generate;
    EXPECT_NE(other.text().tokens, text.tokens);
    for (const RecallPart part : {RecallPart::kTrain, RecallPart::kValid, RecallPart::kTest}) {
      other = d;
      other.part = part;
      EXPECT_EQ(other.text().tokens == text.tokens, part == d.part);
    }
    // Runs of different seeds train on different texts and are judged by the same.
    other = d;
    ++other.seeds.training;
    EXPECT_EQ(other.text().tokens == text.tokens, d.part != RecallPart::kTrain);
  }
}

TEST(RecallText, IsTheSameOnEveryMachine) {
  RecallConfig c;
  c.pairs = 3;
  c.least_pairs = 0;
  c.length = 18;
  EXPECT_EQ(in_words(recall_text(c, {5, 0}, RecallPart::kTest, 7), c),
            "k57 v3 k26 v2 k12 v43 .6 .5 .10 .15 k26 v2 k57 v3 k12 v43 .12 .3");
  c.needle = true;
  c.queries = 1;
  EXPECT_EQ(in_words(recall_text(c, {5, 0}, RecallPart::kTest, 7), c),
            ".8 .7 .0 .6 k24 v3 k26 v5 .10 .15 k12 v2 .11 .4 .0 .11 k12 v2");
}

TEST(RecallText, RangesOfPairsAreEquallyFrequent) {
  RecallConfig c;
  c.pairs = 12;  // 1, 2, 3-4, 5-8, 9-12
  std::map<std::int64_t, int> texts;
  constexpr int kTexts = 5000;
  for (std::uint64_t number = 0; number < kTexts; ++number) {
    ++texts[recall_text(c, {1, 2}, RecallPart::kTrain, number).pairs];
  }
  EXPECT_EQ(texts.size(), 12U);
  for (const auto& [pairs, share] :
       std::map<std::int64_t, double>{{1, 0.2}, {2, 0.2}, {3, 0.1}, {8, 0.05}, {12, 0.05}}) {
    EXPECT_NEAR(texts[pairs] / double{kTexts}, share, 5 * std::sqrt(share / kTexts)) << pairs;
  }
}

TEST(RecallText, GapsFallByTheirPower) {
  RecallConfig c;
  c.pairs = 1;
  c.queries = 1;
  c.length = 2 + 2 * 64;
  const auto share_of_first = [&](const char* gaps) {
    c.gaps = gaps;
    int first = 0;
    for (std::uint64_t number = 0; number < 4000; ++number) {
      first += recall_text(c, {3, 3}, RecallPart::kTest, number).queries.front().distance == 2 ? 1 : 0;
    }
    return first / 4000.0;
  };
  double sum = 0;
  for (int slot = 1; slot <= 64; ++slot) sum += std::pow(slot, -0.9);
  EXPECT_NEAR(share_of_first("power"), 1 / sum, 5 * std::sqrt(1 / sum / 4000));
  EXPECT_NEAR(share_of_first("uniform"), 1 / 64.0, 5 * std::sqrt(1 / 64.0 / 4000));
}

TEST_F(RandomRecall, BatchesAskForTheValuesAlone) {
  const RecallConfig c = random_config(random);
  std::vector<RecallText> texts;
  for (std::uint64_t number = 0; number < 5; ++number) {
    texts.push_back(recall_text(c, {1, 1}, RecallPart::kValid, number));
  }
  const LmBatch batch = recall_batch(texts, {0, 1, 2, 3, 4});
  ASSERT_EQ(batch.rows * batch.width, static_cast<std::int64_t>(batch.inputs.size()));
  ASSERT_EQ(batch.targets.size(), batch.inputs.size());
  std::int64_t predictions = 0;
  for (std::size_t row = 0; row < texts.size(); ++row) {
    std::set<std::int64_t> places;
    for (const RecallQuery& query : texts[row].queries) places.insert(query.place);
    for (std::int64_t place = 0; place < batch.width; ++place) {
      const std::size_t at = row * static_cast<std::size_t>(batch.width) + static_cast<std::size_t>(place);
      EXPECT_EQ(batch.inputs[at], texts[row].tokens[static_cast<std::size_t>(place)]);
      const bool asked = places.contains(place);
      EXPECT_EQ(batch.targets[at], asked ? texts[row].tokens[static_cast<std::size_t>(place) + 1] : kNoTarget);
      predictions += asked ? 1 : 0;
    }
  }
  EXPECT_EQ(batch.predictions, predictions);
  EXPECT_EQ(batch.offsets.back(), batch.rows * batch.width);
}

TEST(RecallFloors, AreWhatTheRulesReach) {
  RecallConfig c;
  c.pairs = 4;
  c.least_pairs = 0;
  c.keys = 100;
  c.values = 10000;  // two are hardly ever the same
  c.length = 64;
  const std::vector<Floor> floors = recall_floors(c, {8, 0}, RecallPart::kTest, 2000);
  ASSERT_EQ(floors.size(), 3U);
  EXPECT_EQ(floors[0].accuracy, 1e-4);
  // Right for the first query alone, when it asks for the last pair.
  EXPECT_NEAR(floors[1].accuracy, 1 / 16.0, 5 * std::sqrt(1 / 16.0 / 8000));
  EXPECT_NEAR(floors[2].accuracy, 0.25, 1e-3);
  c.values = 2;
  for (const Floor& floor : recall_floors(c, {8, 0}, RecallPart::kTest, 2000)) {
    EXPECT_GT(floor.accuracy, 0.45) << floor.rule;
  }
}

TEST(RecallConfig, RefusesWhatCannotBe) {
  const auto refusal = [](const auto& change) {
    RecallConfig c;
    change(c);
    return message_of<UserError>([&] { require_possible(c); });
  };
  EXPECT_NE(refusal([](RecallConfig& c) { c.keys = 15; }).find("recall.keys (15) must not be below recall.pairs (16)"),
            std::string::npos);
  EXPECT_NE(refusal([](RecallConfig& c) { c.least_pairs = 17; }).find("recall.least_pairs (17) must not exceed"),
            std::string::npos);
  EXPECT_NE(refusal([](RecallConfig& c) { c.length = 63; }).find("recall.length (63) must be at least 64"),
            std::string::npos);
  RecallConfig fits;
  fits.length = 64;
  require_possible(fits);
}

}  // namespace
}  // namespace cosformer::data
