// Whole small trainings: they learn, they go on exactly where they stopped, and they end as they should.
#include "train/trainer.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file_fixture.h"
#include "cosformer/weights.h"
#include "runs/trained_models.h"
#include "train/letter_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;

// Are few or many pixels drawn?
data::TaskData image_task(int width, int height) {
  std::mt19937 random(8);
  const auto part = [&](int count) {
    data::DatasetBuilder builder(data::ElementType::kU8);
    for (int at = 0; at < count; ++at) {
      const int label = static_cast<int>(random() % 2);
      std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height), 0);
      const auto drawn = 3 + 6 * static_cast<unsigned long>(label) + random() % 4;
      for (unsigned long i = 0; i < drawn; ++i) {
        pixels[random() % pixels.size()] = static_cast<std::uint8_t>(1 + random() % 255);
      }
      builder.add(std::span<const std::uint8_t>(pixels), label);
    }
    data::DatasetInfo info;
    info.name = "dots";
    info.content = data::Content::kValues;
    info.vocabulary = data::kByteVocabulary;
    info.value_scale = 1.0F / 255.0F;
    info.width = width;
    info.height = height;
    info.classes = {"few", "many"};
    return builder.finish(info);
  };
  return task_of(part, width * height);
}

TEST(Trainer, Learns) {
  const TemporaryDirectory folder;
  Watched watched;
  const TrainResult result =
      train_in(folder.file("run"), small_run({"train.steps=150", "train.eval_every=50"}), letter_task(), watched);
  EXPECT_EQ(result.ending, Ending::kFinished);
  EXPECT_GT(result.test.at("accuracy"), 0.9) << "chance is a third";
  const auto reloaded = runs::load_trained_classifier(folder.file("run"));
  EvaluationOptions options;
  options.batches.batch_size = 7;
  EXPECT_NEAR(evaluate(*reloaded, letter_task().test, options).loss, result.test.at("loss"), 1e-5);
}

// Small validation parts are soon all right; the weights that are surest of them are kept.
TEST(Trainer, KeepsTheLowerLossOfEquallyAccurateWeights) {
  const TemporaryDirectory folder;
  Watched watched;
  const TrainResult result =
      train_in(folder.file("run"), small_run({"train.steps=240", "train.eval_every=30"}), letter_task(), watched);
  double accuracy = -1, loss = 0;
  std::int64_t step = 0, as_accurate = 0;
  std::istringstream lines(read_bytes(folder.file("run") + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json values = nlohmann::json::parse(line);
    if (!values.contains("valid_accuracy")) continue;
    const double found = values["valid_accuracy"], its_loss = values["valid_loss"];
    as_accurate = found == accuracy ? as_accurate + 1 : found > accuracy ? 1 : as_accurate;
    if (found < accuracy || (found == accuracy && its_loss >= loss)) continue;
    accuracy = found;
    loss = its_loss;
    step = values["step"];
  }
  ASSERT_GT(as_accurate, 1) << "nothing to choose from";
  EXPECT_EQ(result.state.best_step, step);
}

TEST(Trainer, GoesOnWithNothingButItsOwnData) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  const runs::RunConfig config = small_run({});
  Watched watched;
  watched.on_step = [](std::int64_t step) {
    if (step == 15) std::raise(SIGINT);
  };
  const data::TaskData task = letter_task();
  ASSERT_EQ(train_in(run, config, task, watched).ending, Ending::kInterrupted);
  data::TaskData other = task;  // as long, with as many examples
  std::swap(other.valid, other.test);
  Watched again;
  EXPECT_NE(message_of<UserError>([&] { train_in(run, config, other, again); }).find("was trained on other data"),
            std::string::npos);
  ASSERT_EQ(train_in(run, config, task, again).ending, Ending::kFinished);
  std::filesystem::rename(run + "/checkpoints", folder.file("gone"));
  EXPECT_NE(message_of<UserError>([&] { train_in(run, config, task, again); }).find("its checkpoints are gone"),
            std::string::npos);
}

TEST(Trainer, GoesOnExactlyAfterInterruptions) {
  const TemporaryDirectory folder;
  // Accumulation and odd intervals, so that checkpoints fall between lines of the log and inside of epochs; features
  // that are drawn on a schedule of their own, and at every step.
  const std::vector<std::vector<std::string>> variants{
      {"train.accumulate=1"},
      {"train.accumulate=3"},
      {"model.attention=performer", "attention.redraw=5", "attention.features=12", "model.positions=stochastic"},
      {"model.attention=rfa", "attention.features=12"},
      {"model.pooled_norm=batch", "train.batch_size=7"},
      {"model.skip_blank=true", "model.positions=grid", "train.flip=true", "train.rotate=true", "train.plain_epochs=1"},
  };
  for (const std::vector<std::string>& variant : variants) {
    SCOPED_TRACE(::testing::PrintToString(variant));
    std::vector<std::string> assignments{"train.log_every=3", "model.dropout=0.2"};
    assignments.insert(assignments.end(), variant.begin(), variant.end());
    const runs::RunConfig config = small_run(assignments);
    const data::TaskData task = config.train.rotate ? image_task(6, 6) : letter_task();
    const std::string whole = folder.file("whole-" + variant.front()), parts = folder.file("parts-" + variant.front());
    Watched watched;
    train_in(whole, config, task, watched);
    TrainResult result;
    int processes = 0;
    do {
      Watched interrupted;
      interrupted.on_step = [&](std::int64_t step) {
        if (step % 7 == 0 || step == 20) std::raise(SIGINT);  // 20: in the middle of an evaluation
      };
      result = train_in(parts, config, task, interrupted);
      ++processes;
    } while (result.ending == Ending::kInterrupted && processes < 20);
    EXPECT_EQ(processes, 7);
    EXPECT_EQ(numbers_of(parts), numbers_of(whole));
    EXPECT_EQ(read_bytes(runs::best_weights_path(parts)), read_bytes(runs::best_weights_path(whole)));
  }
}

TEST(Trainer, TurnsImagesAfterThePlainEpochs) {
  const TemporaryDirectory folder;
  const auto losses = [&](const std::string& name, const std::vector<std::string>& assignments) {
    std::vector<std::string> all{"model.dropout=0", "train.steps=20"};  // an epoch has 15
    all.insert(all.end(), assignments.begin(), assignments.end());
    Watched watched;
    train_in(folder.file(name), small_run(all), image_task(5, 5), watched);
    std::vector<double> found;
    for (const nlohmann::json& entry : numbers_of(folder.file(name))) {
      if (entry.contains("loss")) found.push_back(entry["loss"]);
    }
    return found;
  };
  const std::vector<double> plain = losses("plain", {});
  const std::vector<double> turned = losses("turned", {"train.rotate=true", "train.flip=true", "train.plain_epochs=1"});
  ASSERT_EQ(plain.size(), 20U);
  ASSERT_EQ(turned.size(), 20U);
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 15, turned.begin()));
  EXPECT_NE(plain[16], turned[16]);
  EXPECT_NE(losses("at_once", {"train.rotate=true"})[1], plain[1]);
}

TEST(Trainer, RefusesToTurnWhatIsNotSquare) {
  const runs::RunConfig config = small_run({"train.rotate=true"});
  EXPECT_NE(message_of<UserError>([&] { ClassificationJob(config, image_task(6, 5)); }).find("6 x 5"),
            std::string::npos);
  EXPECT_THROW(ClassificationJob(config, letter_task()), UserError);
}

TEST(Trainer, StopsEarly) {
  const TemporaryDirectory folder;
  Watched watched;
  const TrainResult result =
      train_in(folder.file("run"), small_run({"train.lr=0", "train.patience=2"}), letter_task(), watched);
  EXPECT_EQ(result.ending, Ending::kStoppedEarly);
  EXPECT_EQ(result.state.step, 30);  // evaluated at 10, then twice without a better one
  Watched again;
  EXPECT_EQ(train_in(folder.file("run"), small_run({"train.lr=0", "train.patience=2"}), letter_task(), again).ending,
            Ending::kStoppedEarly);
  EXPECT_EQ(again.steps, 0);
}

TEST(Trainer, ALossThatIsNotFiniteStopsWithItsStepAndLeavesTheCheckpoint) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  Watched watched;
  const runs::RunConfig config = small_run({"train.lr=1e30", "train.clip=0", "train.schedule=constant",
                                            "train.warmup_steps=12", "train.checkpoint_every=1"});
  const std::string message = message_of<Failure>([&] { train_in(run, config, letter_task(), watched); });
  EXPECT_NE(message.find("at step "), std::string::npos) << message;
  EXPECT_NE(message.find("training examples"), std::string::npos) << message;
  EXPECT_NE(message.find("train.lr"), std::string::npos) << message;
  EXPECT_NE(message.find("train.clip=1"), std::string::npos) << message;
}

// Evaluations and checkpoints in the middle of what a line tells of are left out of its time, and nothing else is.
TEST(Trainer, LogsTokensPerSecondOfTraining) {
  const TemporaryDirectory folder;
  Watched watched;
  watched.on_step = [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(4)); };
  train_in(folder.file("run"), small_run({"train.log_every=10", "train.eval_every=9", "train.checkpoint_every=4"}),
           letter_task(), watched);
  std::istringstream lines(read_bytes(folder.file("run") + "/metrics.jsonl"));
  double tokens_before = 0;
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json values = nlohmann::json::parse(line);
    if (!values.contains("tokens_per_second")) continue;
    const double tokens = values["tokens"], rate = values["tokens_per_second"];
    EXPECT_LT(rate, (tokens - tokens_before) / (9 * 0.004)) << "faster than its steps can be: " << line;
    EXPECT_GT(rate, 0);
    tokens_before = tokens;
    ++found;
  }
  EXPECT_EQ(found, 4);
}

TEST(Trainer, TrainsOnPairs) {
  const TemporaryDirectory folder;
  Watched watched;
  const TrainResult result = train_in(folder.file("run"), small_run({"train.steps=5"}), letter_task(true), watched);
  EXPECT_EQ(result.state.step, 5);
  EXPECT_GT(result.test.at("loss"), 0);
}

TEST(RunFolder, IsLockedAndNotMixedUp) {
  const TemporaryDirectory folder;
  const runs::RunConfig config = small_run({});
  cosformer::testing::write_bytes(folder.file("note.txt"), "mine");
  EXPECT_THROW(runs::create_run(folder.path(), config), UserError);
  runs::create_run(folder.file("run"), config);
  EXPECT_EQ(runs::to_toml(runs::read_run(folder.file("run"))), runs::to_toml(config));
  EXPECT_THROW(runs::read_run(folder.file("nowhere")), UserError);
  EXPECT_THROW(runs::load_trained_classifier(folder.file("run")), UserError);
  const runs::RunLock lock(folder.file("run"));
  EXPECT_THROW(runs::RunLock(folder.file("run")), UserError);
}

}  // namespace
}  // namespace cosformer::train
