#include "data/tokenizers/tokenized_text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset/array_dataset.h"
#include "data/dataset_content.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

DatasetPointer texts(bool pairs, std::size_t count) {
  DatasetBuilder builder(ElementType::kU8, pairs);
  for (std::size_t i = 0; i < count; ++i) {
    builder.add_pair(i % 3 == 0 ? "the cat sat" : " ", pairs ? "cat" : "", static_cast<std::int32_t>(i % 2));
  }
  DatasetInfo info;
  info.name = "reviews";
  info.vocabulary = kByteVocabulary;
  info.classes = {"bad", "good"};
  return builder.finish(info);
}

TEST(TokenizedText, IsTheTokenizersIdsBehindTheReservedOnes) {
  const TokenizerPointer words = parse_word_vocabulary("the\ncat\n<unk>\n<eos>\n", "w");
  for (const bool pairs : {false, true}) {
    const DatasetPointer tokens = tokenize_dataset(texts(pairs, 1000), *words, 0, 3);
    ASSERT_EQ(tokens->size(), 1000U);
    EXPECT_EQ(tokens->info().vocabulary, 5 + kFirstToken);
    EXPECT_EQ(tokens->info().max_length, 3);
    EXPECT_EQ(tokens->info().classes.size(), 2U);
    for (std::size_t i = 0; i < tokens->size(); ++i) {
      const Example example = tokens->get(i);
      using Ids = std::vector<std::int32_t>;
      ASSERT_EQ(testing::token_ids(example.first), i % 3 == 0 ? (Ids{2, 3, 4}) : Ids{5}) << i;
      if (pairs) {
        ASSERT_EQ(testing::token_ids(example.second), Ids{3});
      }
      ASSERT_EQ(example.label, static_cast<std::int32_t>(i % 2));
    }
  }
  EXPECT_EQ(tokenize_dataset(texts(false, 10), *words, 2)->info().max_length, 2);
}

TEST(TokenizedText, AsBytesItIsTheTextItself) {
  const DatasetPointer text = texts(false, 7), bytes = tokenize_dataset(text, *byte_tokenizer());
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(testing::token_ids(bytes->get(i).first), testing::token_ids(text->get(i).first));
  }
}

TEST(TokenizedText, RefusesWhatIsNoText) {
  DatasetBuilder builder(ElementType::kI32);
  const std::vector<std::int32_t> numbers = {1, 2, 3};
  builder.add<std::int32_t>(numbers, 0);
  DatasetInfo info;
  info.vocabulary = 10;
  EXPECT_THROW(tokenize_dataset(builder.finish(info), *byte_tokenizer()), UserError);
}

}  // namespace
}  // namespace cosformer::data
