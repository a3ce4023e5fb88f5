// Checkpoints come back as they were, and damaged ones are told from whole ones.
#include "runs/checkpoint.h"

#include <filesystem>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "base/file_size_limit.h"
#include "data/file_mutation.h"

namespace cosformer::runs {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;

CheckpointContent random_content(std::int64_t seed) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  return {{{"a.weight", at::randn({30, 7})}, {"b", at::randn({5})}},
          {{"average.a.weight", at::randn({30, 7})}, {"square.a.weight", at::rand({30, 7})}},
          "[model]\nlayers = 2\n"};
}

TrainState state_at(std::int64_t step) {
  TrainState state;
  state.step = step;
  state.total_steps = 1000;
  state.position = {3, 17};
  state.best = 0.1 + 0.2;
  state.evaluation_is_due = true;
  state.best_step = 40;
  state.evaluations_since_best = 2;
  state.seconds = 12.25;
  state.tokens = 123456789012;
  state.pending_losses = {1.0 / 3, 2.5};
  return state;
}

void expect_equal(const CheckpointContent& a, const CheckpointContent& b) {
  for (std::size_t at = 0; at < a.model.size(); ++at) EXPECT_TRUE(at::equal(a.model[at].second, b.model[at].second));
  for (std::size_t at = 0; at < a.optimizer.size(); ++at) {
    EXPECT_TRUE(at::equal(a.optimizer[at].second, b.optimizer[at].second));
  }
}

TEST(Checkpoint, ComesBackBitForBitAndTheLastTwoAreKept) {
  const TemporaryDirectory run;
  for (const std::int64_t step : {10, 20, 30}) save_checkpoint(run.path(), state_at(step), random_content(step));
  EXPECT_EQ(checkpoint_steps(run.path()), (std::vector<std::int64_t>{20, 30}));
  const CheckpointContent loaded = random_content(99);
  const TrainState state = load_checkpoint(run.path(), 30, loaded, "");
  expect_equal(loaded, random_content(30));
  EXPECT_EQ(state.step, 30);
  EXPECT_EQ(state.position, (data::StreamPosition{3, 17}));
  EXPECT_EQ(state.best, 0.1 + 0.2);
  EXPECT_TRUE(state.evaluation_is_due);
  EXPECT_EQ(state.tokens, 123456789012);
  EXPECT_EQ(state.pending_losses, (std::vector<double>{1.0 / 3, 2.5}));
}

TEST(Checkpoint, AnyDamageIsFoundAndTheIntactOneOffered) {
  const TemporaryDirectory run;
  save_checkpoint(run.path(), state_at(10), random_content(10));
  save_checkpoint(run.path(), state_at(20), random_content(20));
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "checkpoint.json"}) {
    const std::string path = checkpoint_path(run.path(), 20) + "/" + name;
    const std::string whole = cosformer::testing::read_bytes(path);
    for (int trial = 0; trial < 200; ++trial) {
      std::string damaged = whole;
      if (trial % 4 == 0) {
        damaged.resize(random() % whole.size());
      } else {
        damaged[random() % whole.size()] ^= static_cast<char>(1U << (random() % 8));
      }
      cosformer::testing::replace_bytes(path, damaged);
      const CheckpointContent into = random_content(1);
      const std::string message = message_of<UserError>([&] { load_checkpoint(run.path(), 20, into, ""); });
      if (message == "(nothing was thrown)") {  // a change of white space or the like: then the content is the same
        ASSERT_STREQ(name, "checkpoint.json");
        expect_equal(into, random_content(20));
        continue;
      }
      EXPECT_NE(message.find("is damaged"), std::string::npos) << message;
      EXPECT_NE(message.find("--from 10"), std::string::npos) << message;
    }
    cosformer::testing::replace_bytes(path, whole);
  }
  const CheckpointContent unread = random_content(1);
  EXPECT_NE(
      message_of<UserError>([&] { load_checkpoint(run.path(), 15, unread, ""); }).find("there are those of 10, 20"),
      std::string::npos);
  std::filesystem::remove_all(checkpoint_path(run.path(), 10));
  cosformer::testing::replace_bytes(checkpoint_path(run.path(), 20) + "/checkpoint.json", "");
  const CheckpointContent into = random_content(1);
  EXPECT_NE(message_of<UserError>([&] { load_checkpoint(run.path(), 20, into, ""); }).find("no intact one"),
            std::string::npos);
}

TEST(Checkpoint, AFullDiskLeavesThePreviousOne) {
  const TemporaryDirectory run;
  save_checkpoint(run.path(), state_at(10), random_content(10));
  {
    const cosformer::testing::FileSizeLimit limit(500);
    EXPECT_THROW(save_checkpoint(run.path(), state_at(20), random_content(20)), Failure);
  }
  EXPECT_EQ(checkpoint_steps(run.path()), (std::vector<std::int64_t>{10}));
  const CheckpointContent loaded = random_content(99);
  load_checkpoint(run.path(), 10, loaded, "");
  expect_equal(loaded, random_content(10));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(run.path() + "/checkpoints"), {}), 1);
}

}  // namespace
}  // namespace cosformer::runs
