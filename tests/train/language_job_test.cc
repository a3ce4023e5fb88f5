// Whole trainings of small language models: they learn, and go on exactly where they stopped.
#include "train/jobs/language_job.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/baselines/lm_floor.h"
#include "data/tokenizers/tokenizer_file.h"
#include "runs/trained_models.h"
#include "train/inputs/language_batch.h"
#include "train/language_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

class Learning : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Learning, APeriodicTextBelowWhatCountingReaches) {
  const TemporaryDirectory folder;
  std::string text;
  for (int at = 0; at < 800; ++at) text += "one two one three.\n";
  write_bytes(folder.file("text.txt"), text);
  std::vector<std::string> assignments{"train.steps=120", "model.dropout=0", "train.eval_every=60", "data.window=32",
                                       "model.width=32"};
  assignments.insert(assignments.end(), GetParam().begin(), GetParam().end());
  const runs::RunConfig config = small_language_run(folder, "lm", assignments);
  Watched watched;
  const TrainResult result = train_language_in(folder.file("run"), config, watched);
  const LanguageData data = open_text(config);
  const auto tokens = static_cast<double>(data.corpus.test.tokens());
  for (const data::LmFloor& floor : data::lm_floors(data.corpus.train, data.corpus.test, *data.corpus.tokenizer)) {
    EXPECT_LT(result.test.at("loss"), floor.nats / tokens) << floor.rule;
  }
}

INSTANTIATE_TEST_SUITE_P(Language, Learning,
                         ::testing::Values(std::vector<std::string>{},
                                           std::vector<std::string>{"model.pattern=linear,softmax", "model.layers=2",
                                                                    "model.positions=rotary"}),
                         [](const auto& info) { return info.param.empty() ? "cosformer_plus" : "hybrid"; });

struct Variant {
  std::string name, task;
  std::vector<std::string> assignments;
};

class ExactResume : public ::testing::TestWithParam<Variant> {};

TEST_P(ExactResume, InterruptedEqualsUninterrupted) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("text.txt"), random_text(3000));
  std::vector<std::string> assignments{"train.log_every=3"};
  assignments.insert(assignments.end(), GetParam().assignments.begin(), GetParam().assignments.end());
  const runs::RunConfig config = small_language_run(folder, GetParam().task, assignments);
  const TrainResult expected = expect_exact_resume(
      folder, [&](const std::string& run, Watched& w) { return train_language_in(run, config, w); });
  EXPECT_TRUE(std::isfinite(expected.test.at("loss")));
}

INSTANTIATE_TEST_SUITE_P(
    Language, ExactResume,
    ::testing::Values(
        Variant{"lm", "lm", {}}, Variant{"mlm", "mlm", {}},
        Variant{"lm_apart", "lm", {"data.documents=lines", "data.documents_apart=true"}},
        Variant{"lm_carry", "lm", {"data.carry=true", "data.max_length=64", "model.positions=none"}},
        Variant{"lm_carry_accumulated", "lm", {"data.carry=true", "data.max_length=48", "train.accumulate=2"}},
        Variant{"lm_carry_softmax",
                "lm",
                {"data.carry=true", "data.max_length=64", "model.attention=softmax", "model.positions=rotary"}},
        Variant{"lm_carry_hybrid",
                "lm",
                {"data.carry=true", "data.max_length=64", "model.layers=2", "model.pattern=cosformer_plus,softmax",
                 "model.positions=rotary"}},
        Variant{"mlm_hybrid",
                "mlm",
                {"model.layers=2", "model.pattern=performer,softmax", "model.pattern_options=softmax.convolution=3"}}),
    [](const auto& info) { return info.param.name; });

TEST(LanguageJob, ACarriedStateMatters) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("text.txt"), random_text(3000));
  const auto second_loss = [&](const char* carry) {
    const runs::RunConfig config = small_language_run(
        folder, "lm", {std::string("data.carry=") + carry, "data.max_length=64", "model.dropout=0", "train.lr=0"});
    const LanguageData data = open_text(config);
    LanguageJob job(config, data);
    const auto stream = data::lanes(data.corpus.train, data.corpus.tokenizer, {4, 16, false}, 0);
    LanguageInputs first = language_inputs(stream->at({0, 0}), false, at::kCPU);
    const LanguageInputs second = language_inputs(stream->at({0, 1}), false, at::kCPU);
    first.begins_state = true;
    job.loss(first);
    return job.loss(second).item<double>();
  };
  EXPECT_NE(second_loss("true"), second_loss("false"));
}

// A checkpoint whose carried state has other shapes is refused by name, and not by torch when it meets the next window.
TEST(LanguageJob, ACarriedStateThatDoesNotFitIsRefused) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("text.txt"), random_text(3000));
  const runs::RunConfig config = small_language_run(
      folder, "lm", {"data.carry=true", "data.max_length=64", "model.positions=none", "attention.convolution=3"});
  const LanguageData data = open_text(config);
  LanguageJob job(config, data);
  job.begin({0, 0}, false);
  job.loss(job.next().inputs);
  const nn::NamedTensors carried = job.carried();
  job.restore_carried(carried);
  for (const auto& [name, tensor] : carried) {
    nn::NamedTensors wrong = carried;
    for (auto& [other, replaced] : wrong) {
      if (other == name) replaced = replaced.unsqueeze(0);
    }
    const std::string refusal = message_of<UserError>([&] { job.restore_carried(wrong); });
    EXPECT_NE(refusal.find("'" + name + "' of the carried state does not fit"), std::string::npos) << refusal;
  }
}

TEST(LanguageJob, RefusesWhatDoesNotGoTogether) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("text.txt"), random_text(3000));
  const auto refusal = [&](const std::string& task, const std::vector<std::string>& assignments) {
    return message_of<UserError>([&] {
      const runs::RunConfig config = small_language_run(folder, task, assignments);
      LanguageJob(config, open_text(config));
    });
  };
  EXPECT_NE(refusal("mlm", {"data.carry=true", "data.max_length=64"}).find("needs the task lm"), std::string::npos);
  EXPECT_NE(refusal("lm", {"data.carry=true"}).find("data.max_length"), std::string::npos);
  EXPECT_NE(refusal("lm", {"data.max_length=8"}).find("data.window"), std::string::npos);
  EXPECT_NE(refusal("lm", {"model.causal=false"}).find("follows from the task"), std::string::npos);
  EXPECT_NE(refusal("lm", {"model.attention=linformer"}).find("causal"), std::string::npos);
}

TEST(RunTokenizer, AnotherOneIsRefused) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("text.txt"), random_text(3000));
  const std::string run = folder.file("run");
  runs::RunConfig config = small_language_run(folder, "lm", {"data.tokenizer=words", "train.steps=2"});
  Watched watched;
  train_language_in(run, config, watched);
  const auto model = runs::load_trained_language_model(run);
  EXPECT_EQ(runs::tokenizer_of_run(run, model->config().tokenizer)->kind_name(), "words");
  EXPECT_EQ(tokenizer_for(config, run, {})->hash(), model->config().tokenizer);
  config.text.tokenizer = "bytes";
  EXPECT_NE(message_of<UserError>([&] { tokenizer_for(config, run, {}); }).find("another tokenizer"),
            std::string::npos);
  data::save_tokenizer(runs::tokenizer_path(run), *data::byte_tokenizer());
  EXPECT_NE(
      message_of<UserError>([&] { runs::tokenizer_of_run(run, model->config().tokenizer); }).find("another tokenizer"),
      std::string::npos);
}

}  // namespace
}  // namespace cosformer::train
