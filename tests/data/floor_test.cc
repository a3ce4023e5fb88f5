// Floors on data for which the right answers are known.
#include "data/baselines/floor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "base/random.h"
#include "data/baselines/logistic_regression.h"
#include "data/dataset/array_dataset.h"
#include "data/tasks/listops/listops_generator.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using Pixels = std::vector<std::uint8_t>;

DatasetInfo text_info(int classes = 2) {
  DatasetInfo info;
  info.name = "test";
  info.vocabulary = kByteVocabulary;
  for (int i = 0; i < classes; ++i) info.classes.push_back(std::to_string(i));
  return info;
}

double accuracy_of(const std::vector<Floor>& floors, const std::string& rule) {
  for (const Floor& floor : floors) {
    if (floor.rule.find(rule) != std::string::npos) return floor.accuracy;
  }
  ADD_FAILURE() << "no rule " << rule;
  return -1;
}

// Texts of 'x' with marks among them, the more the greater the class.
std::shared_ptr<const ArrayDataset> marked_texts(std::size_t count, std::uint64_t seed) {
  DatasetBuilder builder(ElementType::kU8);
  for (std::size_t i = 0; i < count; ++i) {
    Random random(seed, RandomStream::kSplit, i);
    const auto label = static_cast<std::int32_t>(random.below(3));
    std::string text(40, 'x');
    const auto extra = static_cast<std::int32_t>(random.below(4));
    for (std::int32_t k = 0; k < 2 + 3 * label + extra; ++k) text[random.below(40)] = 'm';
    builder.add(text, label);
  }
  return builder.finish(text_info(3));
}

TEST(Floors, MostFrequentClassAndFirstToken) {
  DatasetBuilder train(ElementType::kU8), test(ElementType::kU8);
  for (const auto& [text, label] : std::vector<std::pair<std::string, int>>{
           {"a.", 0}, {"a.", 0}, {"a.", 1}, {"b.", 1}, {"b.", 1}, {"b.", 1}, {"c.", 2}}) {
    train.add(text, label);
  }
  train.add("unlabelled", kNoLabel);
  // The rule of the first token is right on the first three, the most frequent class on the second and the last.
  for (const auto& [text, label] :
       std::vector<std::pair<std::string, int>>{{"ax", 0}, {"bx", 1}, {"cx", 2}, {"ax", 2}, {"dx", 1}}) {
    test.add(text, label);
  }
  const auto result = floors(*train.finish(text_info(3)), *test.finish(text_info(3)));
  ASSERT_EQ(result.size(), 4U);
  EXPECT_DOUBLE_EQ(accuracy_of(result, "most frequent class given the first token"), 0.8);
  EXPECT_EQ(result[0].rule, "most frequent class");
  EXPECT_DOUBLE_EQ(result[0].accuracy, 0.4);
}

TEST(Floors, RegressionCountsTokens) {
  const auto train = marked_texts(3000, 1), test = marked_texts(2000, 2);
  // The best that counting can do: the likeliest class for each number of marks.
  std::vector<std::array<int, 3>> counts(42);
  const auto marks = [](const Dataset& data, std::size_t i) {
    const auto* text = static_cast<const char*>(data.get(i).first.data);
    return static_cast<std::size_t>(std::count(text, text + data.get(i).first.size, 'm'));
  };
  for (std::size_t i = 0; i < test->size(); ++i) ++counts[marks(*test, i)][static_cast<std::size_t>(test->label(i))];
  int right = 0;
  for (const auto& of : counts) right += *std::max_element(of.begin(), of.end());
  const double best = right / 2000.0;
  const double reached = accuracy_of(floors(*train, *test), "logistic regression");
  EXPECT_LE(reached, best);
  EXPECT_GT(reached, best - 0.02);
  EXPECT_GT(best, 0.8);
  EXPECT_LT(best, 0.99);
}

TEST(Floors, RegressionSeesTheLength) {
  DatasetBuilder train(ElementType::kU8), test(ElementType::kU8);
  for (std::size_t i = 0; i < 400; ++i) {
    (i < 200 ? train : test).add(std::string(i % 2 == 0 ? 10 + i % 7 : 20 + i % 9, 'x'), static_cast<int>(i % 2));
  }
  EXPECT_EQ(accuracy_of(floors(*train.finish(text_info()), *test.finish(text_info())), "regression"), 1.0);
}

TEST(Floors, ImagesByTheirBrightness) {
  DatasetInfo info = text_info();
  info.content = Content::kValues;
  info.value_scale = 1.0F / 255;
  const auto images = [&](std::size_t count, std::uint64_t seed, bool telling) {
    DatasetBuilder builder(ElementType::kU8);
    for (std::size_t i = 0; i < count; ++i) {
      Random random(seed, RandomStream::kSplit, i);
      const auto label = static_cast<int>(random.below(2));
      Pixels pixels(64);
      for (auto& pixel : pixels) {
        pixel = static_cast<std::uint8_t>(random.below(200) + (telling ? 55U * static_cast<unsigned>(label) : 20U));
      }
      builder.add(std::span<const std::uint8_t>(pixels), label);
    }
    return builder.finish(info);
  };
  const auto telling = floors(*images(1000, 1, true), *images(1000, 2, true));
  ASSERT_EQ(telling.size(), 2U);  // the first pixel is no token
  EXPECT_GT(accuracy_of(telling, "value histogram"), 0.99);
  // Four deviations of 2,000 fair coins.
  EXPECT_NEAR(accuracy_of(floors(*images(1000, 1, false), *images(2000, 2, false)), "value histogram"), 0.5, 0.045);
}

TEST(Floors, PairsByTheirDifference) {
  // Each document alone is of either kind equally often: only the comparison tells.
  const auto pairs = [](std::size_t count, std::uint64_t seed) {
    DatasetBuilder builder(ElementType::kU8, true);
    for (std::size_t i = 0; i < count; ++i) {
      Random random(seed, RandomStream::kSplit, i);
      const auto first = random.below(2), second = random.below(2);
      builder.add_pair(std::string(9, first == 0 ? 'p' : 'q'), std::string(9, second == 0 ? 'p' : 'q'),
                       first == second ? 1 : 0);
    }
    return builder.finish(text_info());
  };
  EXPECT_EQ(accuracy_of(floors(*pairs(400, 1), *pairs(400, 2)), "histograms"), 1.0);
}

TEST(Floors, SubSamplingAndThreadsChangeNothingInSecret) {
  const auto train = marked_texts(3000, 1), test = marked_texts(500, 2);
  FloorOptions one, four;
  one.most_examples = four.most_examples = 1000;
  one.threads = 1;
  four.threads = 4;
  const auto a = floors(*train, *test, one), b = floors(*train, *test, four);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].accuracy, b[i].accuracy);
}

TEST(Floors, ListOpsByItsRoot) {
  ListOpsOptions options;
  options.train = 3000;
  options.test = 2000;
  options.valid = 10;
  const Splits splits = generate_listops(options);
  // 36.5% on 20,000 expressions; four deviations of 2,000 around it.
  EXPECT_NEAR(accuracy_of(floors(*splits.train, *splits.test), "first token"), 0.365, 0.043);
}

TEST(Floors, NoLabels) {
  DatasetBuilder train(ElementType::kU8), test(ElementType::kU8);
  train.add("a", 0);
  test.add("a", kNoLabel);
  const auto train_set = train.finish(text_info()), test_set = test.finish(text_info());
  EXPECT_EQ(message_of<UserError>([&] { floors(*train_set, *test_set); }),
            "the test part has no example with a label; floors need some");
}

TEST(LogisticRegression, FindsTheMinimum) {
  // One feature, two classes: at the minimum of the penalised loss its gradient is 0. With x = 1 right three times of
  // four and x = -1 likewise, the odds are 3 to the difference of the weights: log 3 = w1 - w0, by symmetry.
  FeatureTable table(8, 1);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < 8; ++i) {
    table.at(i, 0) = i < 4 ? 1.0F : -1.0F;
    labels.push_back((i < 4) == (i % 4 != 0) ? 1 : 0);
  }
  LogisticOptions options;
  options.weight_penalty = 0;
  const LogisticModel model(table, labels, 2, options);
  EXPECT_NEAR(model.weight(1, 0) - model.weight(0, 0), std::log(3.0), 1e-3);
  EXPECT_NEAR(model.weight(1, 1) - model.weight(0, 1), 0, 1e-3);  // the constant
  EXPECT_EQ(model.predict(table), (std::vector<std::int32_t>{1, 1, 1, 1, 0, 0, 0, 0}));
}

TEST(LogisticRegression, StandardisedFeatures) {
  FeatureTable table(300, 3);  // more than a block
  for (std::size_t i = 0; i < 300; ++i) {
    table.at(i, 0) = static_cast<float>(i);
    table.at(i, 1) = 7.3F;
    table.at(i, 2) = i == 299 ? 1.0F : 0.0F;
  }
  apply(measure(table), table);
  EXPECT_NEAR(table.at(0, 0), -1.7263, 1e-3);  // -149.5 / sqrt((300^2 - 1) / 12)
  EXPECT_NEAR(table.at(299, 0), 1.7263, 1e-3);
  EXPECT_EQ(table.at(5, 1), 0.0F);
  EXPECT_EQ(table.at(299, 2), 10.0F);  // 17.3 deviations, held back
}

}  // namespace
}  // namespace cosformer::data
