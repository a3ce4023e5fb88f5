#include "data/baselines/text_to_text_floor.h"

#include <gtest/gtest.h>

#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

std::shared_ptr<const Dataset> pairs(const std::vector<std::pair<std::string, std::string>>& rows) {
  DatasetBuilder builder(ElementType::kU8, true);
  for (const auto& [source, target] : rows) builder.add_pair(source, target, kNoLabel);
  return builder.finish({});
}

TEST(TextToTextFloors, CountWhatTrivialAnswersMeet) {
  const auto train = pairs({{"a", "yes"}, {"b", "no"}, {"c", "yes"}});
  const auto test = pairs({{"d", "yes"}, {"e", "e"}, {"yes", "yes"}, {"f", "no"}});
  const std::vector<Floor> floors = text_to_text_floors(*train, *test);
  ASSERT_EQ(floors.size(), 2U);
  EXPECT_EQ(floors[0].rule, "the most frequent target");
  EXPECT_DOUBLE_EQ(floors[0].accuracy, 0.5);
  EXPECT_EQ(floors[1].rule, "the source as it is");
  EXPECT_DOUBLE_EQ(floors[1].accuracy, 0.5);
}

TEST(TextToTextFloors, OfEquallyFrequentTargetsTheFirst) {
  EXPECT_DOUBLE_EQ(text_to_text_floors(*pairs({{"x", "b"}, {"y", "a"}}), *pairs({{"z", "a"}}))[0].accuracy, 1);
}

}  // namespace
}  // namespace cosformer::data
