// What is lost when a training is stopped: minutes at most, and nothing when it is asked to stop.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "train/letter_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

// A training that dies at a step, as far as its folder can tell.
void die_at(std::int64_t step, const std::string& run, const runs::RunConfig& config) {
  Watched watched;
  watched.on_step = [&](std::int64_t now) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // longer than train.checkpoint_minutes below
    if (now == step) throw std::runtime_error("killed");
  };
  EXPECT_THROW(train_in(run, config, letter_task(), watched), std::runtime_error);
}

TEST(Interruption, ACheckpointIsWrittenByTimeBeforeTheFirstEvaluation) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run"), whole = folder.file("whole"), never = folder.file("never");
  const std::vector<std::string> settings{"train.eval_every=40", "train.log_every=3", "model.dropout=0.2"};
  std::vector<std::string> by_time = settings;
  by_time.push_back("train.checkpoint_minutes=0.0001");
  die_at(7, run, small_run(by_time));
  EXPECT_EQ(runs::checkpoint_steps(run).back(), 6);
  die_at(7, never, small_run(settings));
  EXPECT_TRUE(runs::checkpoint_steps(never).empty());  // after the default of some minutes
  Watched watched;
  train_in(run, small_run(by_time), letter_task(), watched);
  EXPECT_EQ(watched.steps, 40 - 6);
  train_in(whole, small_run(settings), letter_task(), watched);
  EXPECT_EQ(numbers_of(run), numbers_of(whole));
  EXPECT_EQ(read_bytes(runs::best_weights_path(run)), read_bytes(runs::best_weights_path(whole)));
}

TEST(Interruption, AClosedTerminalSavesAsCtrlCDoes) {
  const TemporaryDirectory folder;
  for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
    const std::string run = folder.file(std::to_string(signal));
    Watched watched;
    watched.on_step = [&](std::int64_t step) {
      if (step == 5) std::raise(signal);
      if (step == 5 && signal == SIGHUP) std::raise(signal);  // the shell says it, then the system
    };
    EXPECT_EQ(train_in(run, small_run({}), letter_task(), watched).ending, Ending::kInterrupted);
    EXPECT_EQ(runs::checkpoint_steps(run), std::vector<std::int64_t>{5});
  }
}

TEST(Interruption, WhoIgnoresHangUpsGoesOnDoingSo) {
  const TemporaryDirectory folder;
  std::signal(SIGHUP, SIG_IGN);
  Watched watched;
  watched.on_step = [](std::int64_t step) {
    if (step == 5) std::raise(SIGHUP);
  };
  EXPECT_EQ(train_in(folder.file("run"), small_run({}), letter_task(), watched).ending, Ending::kFinished);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(Interruption, WhatKilledProcessesLeftIsRemovedAndNothingElse) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  std::filesystem::create_directories(run);
  write_bytes(run + "/.config.toml.0123456789abcdef.tmp", "[da");  // killed while the run was made
  Watched watched;
  train_in(run, small_run({}), letter_task(), watched);
  for (const char* name : {"best.safetensors", "metrics.jsonl", "result.json", "tokenizer", "config.toml"}) {
    write_bytes(run + "/." + name + ".0123456789abcdef.tmp", "torn");
  }
  std::filesystem::create_directories(run + "/checkpoints/.partial");
  write_bytes(run + "/checkpoints/.partial/model.safetensors", "torn");
  std::filesystem::copy(runs::checkpoint_path(run, 30),
                        runs::checkpoint_path(run, 20));  // killed before the third was removed
  const std::vector<std::string> kept{run + "/.best.safetensors.mine.tmp", run + "/.notes.0123456789abcdef.tmp"};
  for (const std::string& path : kept) write_bytes(path, "somebody else's");
  train_in(run, small_run({}), letter_task(), watched);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    const std::string name = entry.path().string();
    if (name.ends_with(".tmp") || name.find(".partial") != std::string::npos) left.push_back(name);
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, kept);
  EXPECT_EQ(runs::checkpoint_steps(run), (std::vector<std::int64_t>{30, 40}));
}

// Told while most of it is still to come, and no three times too short.
TEST(Interruption, WhatATrainingWillTakeIsKnownBeforeMostOfItIsOver) {
  const TemporaryDirectory folder;
  using Clock = std::chrono::steady_clock;
  Watched watched;
  watched.on_step = [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  Observer observer = watched.observer();
  double first = -1;
  Clock::time_point told;
  observer.time_left = [&](double seconds) {
    if (first >= 0) return;
    first = seconds;
    told = Clock::now();
    EXPECT_LT(watched.steps, 50);
  };
  const runs::RunConfig config = small_run({"train.steps=100", "train.eval_every=20"});
  const data::TaskData task = letter_task();
  runs::create_run(folder.file("run"), config);
  ClassificationJob job(config, task);
  train({folder.file("run"), config, {}}, job, observer);
  const double took = std::chrono::duration<double>(Clock::now() - told).count();
  ASSERT_GT(first, 0);
  EXPECT_GT(first, took / 3);
  EXPECT_LT(first, took * 3);
}

}  // namespace
}  // namespace cosformer::train
