#include "data/batches/lm_batches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/batches/lm_masking.h"
#include "data/corpus_fixture.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

using cosformer::testing::all_starts;
using cosformer::testing::all_tokens;
using cosformer::testing::random_prose;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

class LmBatchesTest : public ::testing::Test {
 protected:
  LmBatchesTest() {
    std::mt19937 random(3);
    write_bytes(directory_.file("a.txt"), random_prose(120, random));
    CorpusOptions options;
    options.train = {directory_.file("a.txt")};
    options.documents = DocumentRule::kBlankLines;
    options.valid_fraction = 0;
    options.cache_folder = directory_.path();
    part_ = open_corpus(options, bytes_).train;
    targets_ = all_tokens(part_);
    inputs_ = targets_;
    inputs_.insert(inputs_.begin(), bytes_->end_of_document());
    const std::vector<std::uint64_t> starts = all_starts(part_);
    starts_.insert(starts.begin(), starts.end());
  }

  // Everything a batch must satisfy whatever its kind. Gives the predictions it holds, as their places in the part.
  std::vector<std::uint64_t> check(const LmBatch& batch, bool apart) const {
    std::vector<std::uint64_t> predicted;
    const auto size = static_cast<std::size_t>(batch.rows * batch.width);
    EXPECT_EQ(batch.inputs.size(), size);
    EXPECT_EQ(batch.targets.size(), size);
    EXPECT_EQ(batch.starts.size(), static_cast<std::size_t>(batch.rows));
    EXPECT_EQ(batch.carried.size() + 1, batch.offsets.size());
    EXPECT_EQ(batch.offsets.front(), 0);
    EXPECT_EQ(batch.offsets.back(), static_cast<std::int32_t>(size));
    const std::set<std::int32_t> offsets(batch.offsets.begin(), batch.offsets.end());
    EXPECT_EQ(offsets.size(), batch.offsets.size());
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      bool inside = true;
      for (std::int64_t column = 0; column < batch.width; ++column) {
        const auto at = static_cast<std::size_t>(row * batch.width + column);
        const std::uint64_t place = batch.starts[static_cast<std::size_t>(row)] + static_cast<std::uint64_t>(column);
        inside = inside && place < part_.tokens();
        if (inside && batch.targets[at] != kNoTarget) {
          predicted.push_back(place);
          EXPECT_EQ(batch.targets[at], targets_[place]);
          EXPECT_EQ(batch.inputs[at], inputs_[place]);
        }
        const bool begins = offsets.count(static_cast<std::int32_t>(at)) != 0;
        const bool expected = column == 0 || (apart && starts_.count(place) != 0 && place < part_.tokens());
        EXPECT_EQ(begins, expected) << row << " " << column;
        if (begins && apart && starts_.count(place) != 0) {
          EXPECT_EQ(batch.inputs[at], bytes_->end_of_document());
        }
      }
    }
    EXPECT_EQ(batch.predictions, static_cast<std::int64_t>(predicted.size()));
    return predicted;
  }

  const TemporaryDirectory directory_;
  const TokenizerPointer bytes_ = byte_tokenizer();
  CorpusPart part_;
  std::vector<std::int32_t> targets_, inputs_;
  std::set<std::uint64_t> starts_;
};

bool same(const LmBatch& a, const LmBatch& b) {
  return a.position == b.position && a.next == b.next && a.inputs == b.inputs && a.targets == b.targets &&
         a.offsets == b.offsets && a.carried == b.carried && a.starts == b.starts;
}

TEST_F(LmBatchesTest, RandomWindowsCoverTheTextOnceAnEpoch) {
  for (const bool apart : {false, true}) {
    const auto windows = random_windows(part_, bytes_, {3, 16, apart}, 5);
    std::set<std::vector<std::uint64_t>> orders;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      std::map<std::uint64_t, int> times;
      std::vector<std::uint64_t> order;
      for (std::uint64_t batch = 0; batch < windows->batches(epoch); ++batch) {
        const LmBatch got = windows->at({epoch, batch});
        for (const std::uint64_t place : check(got, apart)) ++times[place];
        order.insert(order.end(), got.starts.begin(), got.starts.end());
        EXPECT_EQ(std::count(got.carried.begin(), got.carried.end(), 1), 0);
      }
      orders.insert(order);
      for (const auto& [place, count] : times) ASSERT_EQ(count, 1) << place;
      EXPECT_GT(times.size() + 4 * 16, part_.tokens());  // at most a shift and two rows are missing
      EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    }
    EXPECT_EQ(orders.size(), 4U);
  }
}

TEST_F(LmBatchesTest, LanesReadOnWhereTheyWere) {
  for (const bool apart : {false, true}) {
    const auto batches = lanes(part_, bytes_, {3, 16, apart}, 5);
    std::vector<std::uint64_t> next(3);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<std::uint64_t> seen;
      for (std::uint64_t number = 0; number < batches->batches(epoch); ++number) {
        const LmBatch batch = batches->at({epoch, number});
        for (const std::uint64_t place : check(batch, apart)) ASSERT_TRUE(seen.insert(place).second);
        std::size_t sequence = 0;
        for (std::size_t row = 0; row < 3; ++row) {
          ASSERT_TRUE(number == 0 || batch.starts[row] == next[row]);
          next[row] = batch.starts[row] + 16;
          const bool begins = apart && starts_.count(batch.starts[row]) != 0;
          ASSERT_EQ(batch.carried[sequence] != 0, number > 0 && !begins);
          for (++sequence; batch.offsets[sequence] < static_cast<std::int32_t>(16 * (row + 1)); ++sequence) {
            ASSERT_EQ(batch.carried[sequence], 0);
          }
        }
      }
      EXPECT_GT(seen.size() + 4 * 16, part_.tokens());
    }
  }
}

TEST_F(LmBatchesTest, EvaluationPredictsEachTokenOnce) {
  for (const bool apart : {false, true}) {
    for (const std::int64_t rows : {1, 2, 5}) {
      for (const std::int64_t context : {0, 5, 15}) {
        for (const std::int64_t width : {std::int64_t{16}, static_cast<std::int64_t>(part_.tokens()) + 3}) {
          const auto batches = whole_stream(part_, bytes_, {rows, width, apart}, context);
          std::vector<int> times(part_.tokens(), 0);
          for (std::uint64_t number = 0; number < batches->batches(0); ++number) {
            const LmBatch batch = batches->at({0, number});
            for (const std::uint64_t place : check(batch, apart)) ++times[place];
            EXPECT_TRUE(context == 0 || std::count(batch.carried.begin(), batch.carried.end(), 1) == 0);
            if (rows == 1 && context == 0) {
              const bool begins = apart && starts_.count(batch.starts[0]) != 0;
              EXPECT_EQ(batch.carried[0] != 0, number > 0 && !begins);
            }
          }
          EXPECT_EQ(std::count(times.begin(), times.end(), 1), static_cast<std::ptrdiff_t>(part_.tokens()));
        }
      }
    }
  }
}

TEST_F(LmBatchesTest, GoOnExactlyFromAnyPosition) {
  for (const bool carried : {false, true}) {
    const auto make = [&](std::uint64_t seed) {
      return carried ? lanes(part_, bytes_, {8, 48, true}, seed) : random_windows(part_, bytes_, {8, 48, true}, seed);
    };
    const auto whole = make(7);
    std::vector<LmBatch> run;
    for (StreamPosition position; run.size() < 40; position = run.back().next) run.push_back(whole->at(position));
    EXPECT_GT(run.back().position.epoch, 1U);
    for (const std::size_t from : {std::size_t{1}, std::size_t{13}, std::size_t{39}}) {
      const auto again = make(7);
      StreamPosition position = run[from - 1].next;
      again->require_position(position);
      for (std::size_t i = from; i < run.size(); ++i) {
        const LmBatch batch = again->at(position);
        ASSERT_TRUE(same(batch, run[i])) << i;
        position = batch.next;
      }
    }
    EXPECT_FALSE(same(make(8)->at({0, 0}), run[0]));
    EXPECT_THROW(whole->require_position({0, 1000000}), UserError);
    EXPECT_THROW(whole->at({0, 1000000}), std::out_of_range);
  }
}

TEST_F(LmBatchesTest, RefusesWhatIsTooShort) {
  const auto tokens = static_cast<std::int64_t>(part_.tokens());
  EXPECT_EQ(random_windows(part_, bytes_, {1, tokens, false}, 0)->batches(0), 1U);
  EXPECT_THROW(random_windows(part_, bytes_, {1, tokens + 1, false}, 0), UserError);
  EXPECT_THROW(lanes(part_, bytes_, {2, tokens, false}, 0), UserError);
  EXPECT_THROW(lanes(part_, bytes_, {0, 5, false}, 0), UserError);
  EXPECT_THROW(whole_stream(CorpusPart(), bytes_, {1, 5, false}), UserError);
  EXPECT_THROW(whole_stream(part_, bytes_, {1, 5, false}, 5), UserError);
}

TEST(Masking, DrawsTheSharesThatItIsAskedFor) {
  const TokenizerPointer bytes = byte_tokenizer();
  constexpr std::size_t kCount = 200000;
  std::vector<std::int32_t> tokens(kCount);
  for (std::size_t i = 0; i < kCount; ++i) tokens[i] = static_cast<std::int32_t>(i % 258);  // specials among them
  const MaskedTokens masked = mask_tokens(tokens, *bytes, {}, 1, 2);
  std::size_t chosen = 0, as_mask = 0, same_token = 0, other = 0, ordinary = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ordinary += tokens[i] < 256;
    if (masked.targets[i] == kNoTarget) {
      ASSERT_EQ(masked.inputs[i], tokens[i]);
      continue;
    }
    ASSERT_LT(tokens[i], 256);
    ASSERT_EQ(masked.targets[i], tokens[i]);
    ++chosen;
    as_mask += masked.inputs[i] == bytes->mask();
    same_token += masked.inputs[i] == tokens[i];
    if (masked.inputs[i] == bytes->mask() || masked.inputs[i] == tokens[i]) continue;
    ASSERT_LT(masked.inputs[i], 256);
    ++other;
  }
  EXPECT_EQ(masked.predictions, static_cast<std::int64_t>(chosen));
  // Five standard deviations of the binomial distribution.
  const auto near = [](std::size_t count, std::size_t of, double rate) {
    const double expected = static_cast<double>(of) * rate;
    EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected * (1 - rate)));
  };
  near(chosen, ordinary, 0.15);
  near(as_mask, chosen, 0.8);
  near(other, chosen, 0.1 * 255 / 256);
  near(same_token, chosen, 0.1 + 0.1 / 256);
}

TEST(Masking, DependsOnSeedAndStepAlone) {
  const TokenizerPointer bytes = byte_tokenizer();
  const std::vector<std::int32_t> tokens(500, 'a');
  const auto drawn = [&](std::uint64_t seed, std::uint64_t step) {
    return mask_tokens(tokens, *bytes, {}, seed, step);
  };
  EXPECT_EQ(drawn(1, 1).inputs, drawn(1, 1).inputs);
  EXPECT_NE(drawn(1, 1).targets, drawn(1, 2).targets);
  EXPECT_NE(drawn(1, 1).targets, drawn(2, 1).targets);
  const MaskedTokens padded = mask_tokens(std::vector<std::int32_t>{kNoTarget, 5}, *bytes, {1, 1, 0}, 0, 0);
  EXPECT_EQ(padded.inputs, (std::vector<std::int32_t>{256, 257}));
  EXPECT_EQ(padded.targets, (std::vector<std::int32_t>{kNoTarget, 5}));
  EXPECT_THROW(mask_tokens(tokens, *bytes, {0.15, 0.8, 0.3}, 0, 0), UserError);
}

}  // namespace
}  // namespace cosformer::data
