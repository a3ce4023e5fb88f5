// Going on with a run that has ended: longer, and on other data.
#include "train/continuation.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "runs/trained_models.h"
#include "train/letter_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;

// As `cosformer train --continue` asks: the folder's settings with these changes.
TrainRequest continuation(const std::string& run, const std::vector<std::string>& assignments) {
  TrainRequest request{run, runs::read_run(run), {}};
  request.continues = true;
  Settings settings;
  add_settings(settings, request.config);
  for (const std::string& assignment : assignments) settings.assign(assignment);
  return request;
}

TrainResult go_on(const TrainRequest& request, const data::TaskData& task, Watched& watched) {
  const models::ModelConfig made = runs::load_trained_classifier(request.run)->config();
  const data::TaskData fitted = fitted_task(task, made.input);
  ClassificationJob job(request.config, fitted, "", &made);
  return train(request, job, watched.observer());
}

std::vector<nlohmann::json> numbers_without_count(const std::string& run) {
  std::vector<nlohmann::json> all = numbers_of(run);
  for (nlohmann::json& entry : all) entry.erase("continued");
  return all;
}

nlohmann::json result_of(const std::string& run) {
  return nlohmann::json::parse(read_bytes(run + "/result.json"));
}

bool says(const Watched& watched, const std::string& text) {
  return std::any_of(watched.lines.begin(), watched.lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Continuation, ARunThatGoesOnWithAConstantRateIsTheLongerRunBitForBit) {
  const TemporaryDirectory folder;
  const std::vector<std::string> constant{"train.schedule=constant", "train.warmup_steps=4", "model.dropout=0.2"};
  const std::string run = folder.file("run"), longer = folder.file("longer");
  Watched watched;
  train_in(run, small_run(constant), letter_task(), watched);
  EXPECT_EQ(go_on(continuation(run, {"train.steps=60"}), letter_task(), watched).state.step, 60);
  std::vector<std::string> all = constant;
  all.push_back("train.steps=60");
  train_in(longer, small_run(all), letter_task(), watched);
  EXPECT_EQ(numbers_without_count(run), numbers_without_count(longer));
  EXPECT_EQ(read_bytes(runs::best_weights_path(run)), read_bytes(runs::best_weights_path(longer)));
  EXPECT_EQ(read_bytes(runs::checkpoint_path(run, 60) + "/optimizer.safetensors"),
            read_bytes(runs::checkpoint_path(longer, 60) + "/optimizer.safetensors"));
}

TEST(Continuation, TheRateWarmsUpFromWhereItWasAndFallsOverTheNewSteps) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  Watched watched;
  train_in(run, small_run({"train.final_lr=0.002"}), letter_task(), watched);  // 40 steps, a peak of 0.01
  go_on(continuation(run, {"train.steps=60", "train.warmup_fraction=0.2"}), letter_task(), watched);
  std::vector<double> rates(61);
  for (const nlohmann::json& entry : numbers_of(run)) {
    if (!entry.contains("lr")) continue;
    rates[entry["step"].get<std::size_t>()] = entry["lr"];
    EXPECT_EQ(entry.contains("continued"), entry["step"] > 40) << entry;
  }
  EXPECT_DOUBLE_EQ(rates[40], 0.002);
  EXPECT_DOUBLE_EQ(rates[42], 0.006);
  EXPECT_DOUBLE_EQ(rates[44], 0.01);
  EXPECT_LT(rates[52], rates[46]);
  EXPECT_DOUBLE_EQ(rates[60], 0.002);
  EXPECT_TRUE(says(watched, "continued at step 40: 20 more steps"));
  EXPECT_EQ(result_of(run)["continued_at"], nlohmann::json({40}));
  EXPECT_EQ(result_of(run)["steps"], 60);
  EXPECT_EQ(runs::read_run(run).train.steps, 60);
}

TEST(Continuation, GoesOnExactlyHoweverOftenItIsStopped) {
  const TemporaryDirectory folder;
  const std::string whole = folder.file("whole"), parts = folder.file("parts");
  const data::TaskData other = letter_task(false, 8);
  Watched watched;
  for (const std::string& run : {whole, parts}) train_in(run, small_run({}), letter_task(), watched);
  const auto request_for = [&](const std::string& run) {
    TrainRequest request = continuation(run, {"train.steps=60"});
    request.names_data = true;
    return request;
  };
  go_on(request_for(whole), other, watched);
  // Killed before there is a checkpoint of the new stretch: the settings alone tell of it.
  watched.on_step = [](std::int64_t) { throw std::runtime_error("killed"); };
  EXPECT_THROW(go_on(request_for(parts), other, watched), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(parts + "/result.json"));
  watched.on_step = {};
  TrainResult result;
  const int processes = train_with_interruptions(
      [&](Watched& w) {
        return result = go_on({parts, runs::read_run(parts), {}}, other, w);
      },
      [](std::int64_t step) { return step % 7 == 0; });
  EXPECT_EQ(processes, 4);  // interrupted after 42, 49 and 56
  EXPECT_EQ(numbers_of(parts), numbers_of(whole));
  EXPECT_EQ(read_bytes(runs::best_weights_path(parts)), read_bytes(runs::best_weights_path(whole)));
  EXPECT_EQ(result.state.continued_at, std::vector<std::int64_t>{40});
  // The same request again, on what has ended, begins nothing; nor does one for fewer steps.
  EXPECT_NE(message_of<UserError>([&] { go_on(request_for(parts), other, watched); }).find("--steps 160"),
            std::string::npos);
  EXPECT_EQ(runs::read_run(parts).train.steps, 60);
}

TEST(Continuation, OtherDataAreTakenWhereTheyAreNamedAndDecideAnew) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  Watched watched;
  train_in(run, small_run({"train.lr=0.001"}), letter_task(), watched);
  const data::TaskData longer = letter_task(false, 8, 90);
  TrainRequest request = continuation(run, {"train.steps=0", "train.epochs=2"});
  EXPECT_NE(message_of<UserError>([&] { go_on(request, longer, watched); }).find("name them with --data"),
            std::string::npos);
  request.names_data = true;
  const TrainResult result = go_on(request, longer, watched);
  EXPECT_EQ(result.state.step, 40 + 2 * 15);  // two epochs of the new data
  EXPECT_GT(result.state.best_step, 40);
  EXPECT_TRUE(says(watched, "on other data"));
  EXPECT_FALSE(fitted_task(longer, runs::load_trained_classifier(run)->config().input).notes.empty())
      << "nothing says what was cut";
  data::TaskData pairs = letter_task(true);
  EXPECT_NE(message_of<UserError>([&] {
              fitted_task(pairs, runs::load_trained_classifier(run)->config().input);
            }).find("pairs"),
            std::string::npos);
}

TEST(Continuation, CheckpointsOfBeforeStayLoadable) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  Watched watched;
  train_in(run, small_run({}), letter_task(), watched);
  go_on(continuation(run, {"train.steps=45"}), letter_task(), watched);
  ASSERT_EQ(runs::checkpoint_steps(run), (std::vector<std::int64_t>{40, 45}));
  const TrainResult result = go_on({run, runs::read_run(run), 40}, letter_task(), watched);
  EXPECT_EQ(result.state.step, 45);
  EXPECT_EQ(result.state.continued_at, std::vector<std::int64_t>{40});
}

TEST(Continuation, ARunThatStoppedEarlyGoesOn) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  Watched watched;
  ASSERT_EQ(train_in(run, small_run({"train.lr=0", "train.patience=2"}), letter_task(), watched).state.step, 30);
  const TrainResult result = go_on(continuation(run, {"train.lr=0.01", "train.steps=60"}), letter_task(), watched);
  EXPECT_GT(result.state.step, 30);
}

}  // namespace
}  // namespace cosformer::train
