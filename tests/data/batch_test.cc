// Batches as arrays: padding, packing, cutting, values and pairs.
#include "data/batches/batch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

using Ints = std::vector<std::int32_t>;

std::shared_ptr<const ArrayDataset> pairs() {
  DatasetBuilder builder(ElementType::kU8, true);
  builder.add_pair("abc", "x", 1);
  builder.add_pair("d", "yz", 0);
  DatasetInfo info;
  info.vocabulary = kByteVocabulary;
  info.classes = {"no", "yes"};
  return builder.finish(info);
}

const std::vector<std::uint32_t> kBoth = {1, 0};

TEST(Batch, Padded) {
  BatchOptions options;
  options.width_multiple = 2;
  const Batch batch = make_batch(*pairs(), kBoth, options);
  EXPECT_EQ(batch.examples, kBoth);
  EXPECT_EQ(batch.labels, (Ints{0, 1}));
  EXPECT_EQ(batch.first.rows, 2);
  EXPECT_EQ(batch.first.width, 4);
  EXPECT_EQ(batch.first.tokens, (Ints{'d' + 2, 0, 0, 0, 'a' + 2, 'b' + 2, 'c' + 2, 0}));
  EXPECT_EQ(batch.first.lengths, (Ints{1, 3}));
  EXPECT_TRUE(batch.first.offsets.empty());
  EXPECT_TRUE(batch.first.values.empty());
  EXPECT_EQ(batch.second.width, 2);
  EXPECT_EQ(batch.second.tokens, (Ints{'y' + 2, 'z' + 2, 'x' + 2, 0}));
}

TEST(Batch, Packed) {
  BatchOptions options;
  options.layout = Layout::kPacked;
  const Batch batch = make_batch(*pairs(), kBoth, options);
  EXPECT_EQ(batch.first.tokens, (Ints{'d' + 2, 'a' + 2, 'b' + 2, 'c' + 2}));
  EXPECT_EQ(batch.first.offsets, (Ints{0, 1, 4}));
  EXPECT_EQ(batch.first.width, 3);
  EXPECT_EQ(batch.second.offsets, (Ints{0, 2, 3}));
}

TEST(Batch, FixedWidthCutsAndPads) {
  BatchOptions options;
  options.fixed_width = 2;
  const Batch batch = make_batch(*pairs(), kBoth, options);
  EXPECT_EQ(batch.first.tokens, (Ints{'d' + 2, 0, 'a' + 2, 'b' + 2}));
  EXPECT_EQ(batch.first.lengths, (Ints{1, 2}));
  options.fixed_width = 0;
  options.max_length = 1;
  EXPECT_EQ(make_batch(*pairs(), kBoth, options).first.tokens, (Ints{'d' + 2, 'a' + 2}));
}

TEST(Batch, PixelsAsValuesOrTokens) {
  DatasetBuilder builder(ElementType::kU8);
  builder.add(std::string("\0\xff", 2), 0);
  DatasetInfo info;
  info.content = Content::kValues;
  info.vocabulary = kByteVocabulary;
  info.value_scale = 1.0F / 255.0F;
  const auto dataset = builder.finish(info);
  const std::vector<std::uint32_t> only = {0};
  BatchOptions options;
  options.fixed_width = 3;
  const Batch values = make_batch(*dataset, only, options);
  EXPECT_EQ(values.first.values, (std::vector<float>{0.0F, 1.0F, 0.0F}));
  EXPECT_TRUE(values.first.tokens.empty());
  EXPECT_EQ(values.second.rows, 0);
  options.reading = Reading::kTokens;
  EXPECT_EQ(make_batch(*dataset, only, options).first.tokens, (Ints{2, 257, kPadToken})) << "pixel 0 is not padding";
}

TEST(Batch, RealNumbersAreNotTokens) {
  DatasetBuilder builder(ElementType::kF32);
  const std::vector<float> sequence = {1.5F};
  builder.add(std::span<const float>(sequence), 0);
  DatasetInfo info;
  info.content = Content::kValues;
  const auto dataset = builder.finish(info);
  BatchOptions options;
  options.reading = Reading::kTokens;
  const std::vector<std::uint32_t> only = {0};
  EXPECT_THROW(make_batch(*dataset, only, options), UserError);
  options.reading = Reading::kAsContent;
  EXPECT_EQ(make_batch(*dataset, only, options).first.values, sequence);
}

}  // namespace
}  // namespace cosformer::data
