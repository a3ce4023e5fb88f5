// The floor of texts by their words and pairs of words, on texts whose letters say nothing.
#include "data/baselines/word_regression.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "data/baselines/floor.h"
#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

// Twenty words in a drawn order, one of them twice. In a text of class 1 "blue" stands behind "red" somewhere, in one
// of class 0 in front of it: the same words and letters, another pair.
std::shared_ptr<const ArrayDataset> ordered_texts(std::size_t count, std::uint64_t seed) {
  DatasetBuilder builder(ElementType::kU8);
  for (std::size_t i = 0; i < count; ++i) {
    Random random(seed, RandomStream::kSplit, i);
    const auto label = static_cast<std::int32_t>(random.below(2));
    std::vector<std::string> words;
    for (int word = 0; word < 20; ++word) words.push_back(std::string(1, static_cast<char>('a' + word)));
    shuffle(words, random);
    const bool loud = random.below(2) == 1;
    words[random.below(20)] = label == 1 ? (loud ? "RED BLUE" : "red blue") : (loud ? "BLUE RED" : "blue red");
    std::string text;
    for (const std::string& word : words) text += word + " ";
    builder.add(text, label);
  }
  DatasetInfo info;
  info.name = "test";
  info.vocabulary = kByteVocabulary;
  info.classes = {"0", "1"};
  return builder.finish(info);
}

double accuracy_of(const std::vector<Floor>& floors, const std::string& rule) {
  for (const Floor& floor : floors) {
    if (floor.rule.find(rule) != std::string::npos) return floor.accuracy;
  }
  ADD_FAILURE() << "no rule " << rule;
  return -1;
}

TEST(WordRegression, KnowsPairsOfWordsWhereBytesSayNothing) {
  const auto result = floors(*ordered_texts(1000, 1), *ordered_texts(500, 2));
  EXPECT_GT(accuracy_of(result, "words and pairs of words"), 0.97);
  EXPECT_LT(accuracy_of(result, "token histogram"), 0.7);
}

TEST(WordRegression, BothDocumentsOfAPair) {
  const auto pairs = [](std::uint64_t seed) {
    DatasetBuilder builder(ElementType::kU8, true);
    for (std::size_t i = 0; i < 400; ++i) {
      Random random(seed, RandomStream::kSplit, i);
      const auto label = static_cast<std::int32_t>(random.below(2));
      builder.add_pair("one or the other", label == 1 ? "for it" : "against it", label);
    }
    DatasetInfo info;
    info.name = "test";
    info.vocabulary = kByteVocabulary;
    info.classes = {"0", "1"};
    return builder.finish(info);
  };
  EXPECT_EQ(accuracy_of(floors(*pairs(1), *pairs(2)), "words and pairs of words"), 1.0);
}

TEST(WordRegression, ManyClassesAndEmptyTexts) {
  DatasetBuilder builder(ElementType::kU8);
  DatasetInfo info;
  info.name = "test";
  info.vocabulary = kByteVocabulary;
  for (std::int32_t label = 0; label < 40; ++label) {
    info.classes.push_back(std::to_string(label));
    for (int copy = 0; copy < 8; ++copy) builder.add("number " + std::to_string(label), label);
  }
  builder.add("", 0);
  const auto texts = builder.finish(info);
  const auto result = floors(*texts, *texts);
  EXPECT_GT(accuracy_of(result, "words and pairs of words"), 0.9);
}

TEST(WordRegression, NotOfWhatIsNoText) {
  DatasetBuilder builder(ElementType::kU8);
  DatasetInfo info;
  info.name = "test";
  info.vocabulary = 20;
  info.classes = {"0", "1"};
  builder.add("\1\2", 0);
  builder.add("\2\1", 1);
  const auto tokens = builder.finish(info);
  EXPECT_EQ(floors(*tokens, *tokens).size(), 3U);
}

}  // namespace
}  // namespace cosformer::data
