// Passage pairs: from which articles they come, that nothing but the pair tells the class, refusals.
#include "data/tasks/same_article.h"

#include <array>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"

namespace cosformer::data {
namespace {

using cosformer::testing::content_of;
using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::text_of;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(IsSubstring, part, text)

// Article number i is written in one letter pair of its own, so that a passage tells where it comes from.
std::string article(int i, std::size_t length) {
  const std::string word = {static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
  std::string text = "\x01";  // marks the beginning
  while (text.size() < length) text += word;
  text.resize(length);
  return text;
}

std::string articles(int count, const std::string& separator = "\n\n") {
  std::string text;
  for (int i = 0; i < count; ++i) text += article(i, 200 + static_cast<std::size_t>(i)) + separator;
  return text;
}

// Which letters a passage has, whichever comes first.
std::string source_of(const SequenceView& passage) {
  std::set<char> letters;
  for (const char c : text_of(passage)) letters.insert(c);
  letters.erase('\x01');
  return {letters.begin(), letters.end()};
}

class SameArticle : public ::testing::Test {
 protected:
  std::string file(const std::string& content) const {
    write_bytes(directory_.file("articles.txt"), content);
    return directory_.file("articles.txt");
  }
  const TemporaryDirectory directory_;
  const SameArticleOptions options_ = {.seed = 5,
                                       .train = 400,
                                       .valid = 60,
                                       .test = 80,
                                       .least_length = 20,
                                       .most_length = 80,
                                       .valid_fraction = 0.2,
                                       .test_fraction = 0.3};
};

TEST_F(SameArticle, LabelsSayWhetherThePassagesShareAnArticle) {
  const SameArticleSplits splits = load_same_article(file(articles(20)), options_);
  EXPECT_EQ(splits.articles, 20U);
  for (const auto& [part, size] : {std::pair{splits.train, 400U}, {splits.valid, 60U}, {splits.test, 80U}}) {
    ASSERT_EQ(part->size(), size);
    EXPECT_TRUE(part->info().pairs);
    std::size_t same = 0;
    for (std::size_t i = 0; i < part->size(); ++i) {
      const Example example = part->get(i);
      EXPECT_EQ(example.label, part->label(i));
      EXPECT_EQ(source_of(example.first) == source_of(example.second), example.label == 1) << i;
      same += example.label == 1 ? 1 : 0;
      for (const SequenceView& passage : {example.first, example.second}) {
        EXPECT_GE(passage.size, 20U);
        EXPECT_LE(passage.size, 80U);
      }
      EXPECT_EQ(part->lengths(i).second, static_cast<std::int64_t>(example.second.size));
    }
    EXPECT_EQ(same, size / 2);
  }
}

TEST_F(SameArticle, NoArticleIsInTwoParts) {
  const SameArticleSplits splits = load_same_article(file(articles(20)), options_);
  std::map<std::string, std::set<int>> parts_of;
  int number = 0;
  for (const DatasetPointer& part : {splits.train, splits.valid, splits.test}) {
    for (std::size_t i = 0; i < part->size(); ++i) {
      parts_of[source_of(part->get(i).first)].insert(number);
      parts_of[source_of(part->get(i).second)].insert(number);
    }
    ++number;
  }
  std::array<int, 3> counts{};
  for (const auto& [source, parts] : parts_of) {
    ASSERT_EQ(parts.size(), 1U) << source;
    ++counts[static_cast<std::size_t>(*parts.begin())];
  }
  EXPECT_EQ(counts, (std::array<int, 3>{10, 4, 6}));
}

TEST_F(SameArticle, PassagesOfOneArticleDoNotOverlap) {
  // Numbers that occur once each: an overlap would show one twice.
  std::string text;
  for (int i = 0; i < 8; ++i) {
    for (int n = 0; n < 50; ++n) text += static_cast<char>('a' + i), text += static_cast<char>(128 + n);
    text += "\n\n";
  }
  SameArticleOptions options = options_;
  options.least_length = 10;
  options.most_length = 50;
  const SameArticleSplits splits = load_same_article(file(text), options);
  for (std::size_t i = 0; i < splits.train->size(); ++i) {
    const Example example = splits.train->get(i);
    if (example.label == 0) continue;
    std::set<char> seen;
    for (const SequenceView& passage : {example.first, example.second}) {
      for (const char c : text_of(passage)) {
        const bool number = static_cast<unsigned char>(c) >= 128;
        ASSERT_TRUE(!number || seen.insert(c).second) << i;
      }
    }
  }
}

TEST_F(SameArticle, LengthsTellNothing) {
  SameArticleOptions options = options_;
  options.train = 20000;
  const SameArticleSplits splits = load_same_article(file(articles(20)), options);
  std::array<double, 2> sum{}, product{};
  for (std::size_t i = 0; i < splits.train->size(); ++i) {
    const Lengths lengths = splits.train->lengths(i);
    const auto label = static_cast<std::size_t>(splits.train->label(i));
    sum[label] += static_cast<double>(lengths.first + lengths.second) / 2 / 10000;
    product[label] += static_cast<double>((lengths.first - 50) * (lengths.second - 50)) / 10000;
  }
  // Uniform between 20 and 80: mean 50, deviation 17.6; of the mean of 10,000 pairs 0.125, of the products 3.1.
  for (const int label : {0, 1}) {
    EXPECT_NEAR(sum[static_cast<std::size_t>(label)], 50, 0.75);
    EXPECT_NEAR(product[static_cast<std::size_t>(label)], 0, 18);
  }
}

TEST_F(SameArticle, SameSeedSamePairs) {
  const std::string path = file(articles(20));
  SameArticleOptions other = options_;
  other.seed = 6;
  const auto once = content_of(*load_same_article(path, options_).train);
  EXPECT_EQ(once, content_of(*load_same_article(path, options_).train));
  EXPECT_NE(once, content_of(*load_same_article(path, other).train));
}

TEST_F(SameArticle, ShortArticlesAndOtherLineEnds) {
  const SameArticleSplits splits = load_same_article(
      file("\r\n \r\n" + articles(20, "\r\n\r\n\r\n") + "too short\n\n" + article(21, 159)), options_);
  EXPECT_EQ(splits.articles, 20U);
  EXPECT_EQ(splits.too_short, 2U);
}

TEST_F(SameArticle, Refusals) {
  const auto refusal = [&](const std::string& content, const SameArticleOptions& options) {
    return message_of<UserError>([&] { load_same_article(file(content), options); });
  };
  EXPECT_HAS(refusal(articles(5), options_), "it has 5 articles of at least 160 bytes (and 0 shorter ones)");
  EXPECT_HAS(refusal("", options_), "it has 0 articles");
  SameArticleOptions options = options_;
  options.least_length = 81;
  EXPECT_HAS(refusal(articles(20), options), "passages of 81 to 80 bytes are impossible");
  options = options_;
  options.test_fraction = 0.8;
  EXPECT_HAS(refusal(articles(20), options), "less than 1 together");
  EXPECT_HAS(message_of<UserError>([&] { load_same_article("nowhere.txt", options_); }), "no such file");
}

}  // namespace
}  // namespace cosformer::data
