// A small encoder-decoder learns to write short words backwards.
#include <gtest/gtest.h>

#include "data/baselines/text_to_text_floor.h"
#include "train/text_to_text_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

class Reversal : public ::testing::TestWithParam<const char*> {};

TEST_P(Reversal, IsLearnedFarAboveTheFloors) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("pairs.tsv"), reversals(2000, 7));
  const runs::RunConfig config = small_text_to_text_run(
      folder, {std::string("model.attention=") + GetParam(), "model.width=48", "model.heads=4", "model.feed_forward=96",
               "model.dropout=0", "model.layers=2", "train.steps=500", "train.eval_every=500", "train.batch_size=32",
               "train.lr=0.003", "text_to_text.decode_examples=200", "train.log_every=50"});
  Watched watched;
  const TrainResult result = train_text_to_text_in(folder.file("run"), config, watched);
  const TextToTextData data = open_text_to_text_data(config, folder.file("run"), {});
  for (const data::Floor& floor : data::text_to_text_floors(*data.task.train, *data.task.test)) {
    EXPECT_LT(floor.accuracy, 0.35) << floor.rule;
  }
  EXPECT_GT(result.test.at("exact_match"), 0.7);
  EXPECT_LT(result.test.at("loss"), 0.3);
}

INSTANTIATE_TEST_SUITE_P(Seq2Seq, Reversal, ::testing::Values("cosformer_plus", "softmax"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cosformer::train
