// Small models learn to recall a few pairs, far above what rules that bind nothing reach.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "data/baselines/recall_floor.h"
#include "train/recall_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::TemporaryDirectory;

class RecallLearning : public ::testing::TestWithParam<const char*> {};

TEST_P(RecallLearning, IsFarAboveTheFloors) {
  const TemporaryDirectory folder;
  const runs::RunConfig config = small_recall_run(
      {std::string("model.attention=") + GetParam(), "attention.convolution=4", "model.width=64", "model.heads=4",
       "model.layers=2", "model.feed_forward=64", "model.dropout=0", "model.positions=none",
       "data.generate_train=100000", "data.generate_valid=200", "data.generate_test=400", "train.batch_size=32",
       "train.steps=400", "train.eval_every=400", "train.lr=0.005"});
  at::set_num_threads(1);  // of so small a model more would only wait for each other
  Watched watched;
  const TrainResult result = train_recall_in(folder.file("run"), config, watched);
  const RecallEvaluationOptions o = recall_evaluation_options(config, Part::kTest, at::kCPU);
  for (const data::Floor& floor : data::recall_floors(config.recall, o.seeds, o.part, o.texts)) {
    EXPECT_LT(floor.accuracy, 0.6) << floor.rule;
  }
  EXPECT_GT(result.test.at("accuracy"), 0.9);
  EXPECT_GT(result.test.at("accuracy_pairs_3_4"), 0.85);
}

INSTANTIATE_TEST_SUITE_P(Recall, RecallLearning, ::testing::Values("cosformer_plus", "softmax"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cosformer::train
