// Parts of data sets.
#include "data/dataset/subset.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

DatasetPointer numbered(std::size_t size) {
  DatasetBuilder builder(ElementType::kU8);
  for (std::size_t i = 0; i < size; ++i) builder.add(std::string(i + 1, 'a'), static_cast<std::int32_t>(i));
  return builder.finish({});
}

std::vector<std::int32_t> labels_of(const Dataset& dataset) {
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    EXPECT_EQ(dataset.get(i).label, dataset.label(i));
    EXPECT_EQ(dataset.lengths(i).first, dataset.label(i) + 1);
    labels.push_back(dataset.label(i));
  }
  return labels;
}

TEST(Subset, SliceAndSelection) {
  EXPECT_EQ(labels_of(*slice(numbered(5), 1, 4)), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(labels_of(*select_examples(numbered(5), {4, 0, 4})), (std::vector<std::int32_t>{4, 0, 4}));
  EXPECT_THROW(slice(numbered(5), 1, 6), std::out_of_range);
  EXPECT_THROW(select_examples(numbered(5), {5}), std::out_of_range);
}

TEST(Subset, HoldOutPartsTheWhole) {
  const DatasetPointer whole = numbered(100);
  const HeldOut parts = hold_out(whole, 0.1, 7);
  std::vector<std::int32_t> kept = labels_of(*parts.kept), held = labels_of(*parts.held_out);
  EXPECT_EQ(held.size(), 10U);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  std::vector<std::int32_t> all = kept;
  all.insert(all.end(), held.begin(), held.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, labels_of(*whole));
  EXPECT_EQ(labels_of(*hold_out(whole, 0.1, 7).held_out), held);
  EXPECT_NE(labels_of(*hold_out(whole, 0.1, 8).held_out), held);
  EXPECT_THROW(hold_out(whole, 1.0, 7), UserError);
  EXPECT_THROW(hold_out(numbered(1), 0.5, 7), UserError);
}

TEST(Subset, ShortenCutsLongSequencesOnly) {
  const DatasetPointer whole = numbered(5);
  EXPECT_EQ(shorten(whole, 5), whole);
  const DatasetPointer part = shorten(whole, 3);
  EXPECT_EQ(part->info().max_length, 3);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < part->size(); ++i) {
    lengths.push_back(part->lengths(i).first);
    EXPECT_EQ(part->get(i).first.size, static_cast<std::size_t>(lengths.back()));
    EXPECT_EQ(part->get(i).label, whole->label(i));
  }
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{1, 2, 3, 3, 3}));
}

TEST(Subset, SampleIsDrawnBySeedAndKeepsTheOrder) {
  const DatasetPointer whole = numbered(100);
  EXPECT_EQ(sample(whole, 100, 1), whole);
  const std::vector<std::int32_t> once = labels_of(*sample(whole, 30, 1));
  EXPECT_EQ(once.size(), 30U);
  EXPECT_TRUE(std::is_sorted(once.begin(), once.end()));
  EXPECT_TRUE(std::adjacent_find(once.begin(), once.end()) == once.end());
  EXPECT_EQ(once, labels_of(*sample(whole, 30, 1)));
  EXPECT_NE(once, labels_of(*sample(whole, 30, 2)));
}

}  // namespace
}  // namespace cosformer::data
