// Fine-tuning: the classifier's encoder is the language model, bit for bit.
#include "train/initial_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/jobs/classification_job.h"
#include "train/language_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

class FineTuning : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_.file("text.txt"), random_text(3000));
    std::string table = "text\tlabel\n";
    for (int at = 0; at < 60; ++at) {
      table += std::string("the ") + (at % 2 == 0 ? "cat" : "fish") + " sat on a mat " + std::to_string(at) +
               (at % 2 == 0 ? "\tcat\n" : "\tfish\n");
    }
    write_bytes(folder_.file("texts.tsv"), table);
  }

  void pretrain(const std::string& task, const std::vector<std::string>& assignments) {
    std::vector<std::string> all{"train.steps=3", "data.window=32"};
    all.insert(all.end(), assignments.begin(), assignments.end());
    Watched watched;
    train_language_in(run_, small_language_run(folder_, task, all), watched);
  }

  runs::RunConfig fine_tuning(const std::vector<std::string>& assignments) {
    runs::RunConfig config;
    Settings settings;
    add_settings(settings, config);
    for (const std::string& assignment : {std::string("data.task=text_files"), "data.path=" + folder_.file("texts.tsv"),
                                          "train.init=" + run_, std::string("train.device=cpu")}) {
      settings.assign(assignment);
    }
    for (const std::string& assignment : assignments) settings.assign(assignment);
    runs::apply_presets(config, settings);
    return config;
  }

  TemporaryDirectory folder_;
  std::string run_ = folder_.file("pretrained");
};

TEST_F(FineTuning, TakesEveryWeightButTheOutput) {
  for (const auto& [task, tokenizer] :
       {std::pair{"mlm", "bytes"}, std::pair{"lm", "bytes"}, std::pair{"mlm", "words"}}) {
    SCOPED_TRACE(std::string(task) + " " + tokenizer);
    run_ = folder_.file(std::string(task) + tokenizer);
    pretrain(task, {std::string("data.tokenizer=") + tokenizer});
    const runs::RunConfig config = fine_tuning({});
    const auto from = runs::load_trained_language_model(run_);
    const data::TokenizerPointer tokens = runs::tokenizer_of_run(run_, from->config().tokenizer);
    const data::TaskData task_data = tokenized(data::open_task(uncut(config.data)), *tokens, config.data.max_length);
    ClassificationJob job(config, task_data, tokens->hash());
    const at::Tensor first_rows =
        job.model().named_parameters()["encoder.token_embedding.weight"].narrow(0, 0, 2).clone();
    take_encoder(*from, job.model());
    const auto into = job.model().named_parameters();
    std::size_t compared = 0;
    for (const auto& item : from->named_parameters()) {
      const at::Tensor target = into["encoder." + item.key()];
      if (item.key() == "token_embedding.weight") {
        EXPECT_EQ(target.size(0), item.value().size(0) + 2);
        EXPECT_TRUE(at::equal(target.narrow(0, 2, item.value().size(0)), item.value()));
        EXPECT_TRUE(at::equal(target.narrow(0, 0, 2), first_rows));
      } else {
        EXPECT_TRUE(at::equal(target, item.value())) << item.key();
      }
      ++compared;
    }
    EXPECT_EQ(compared + 4, into.size()) << "two linear layers of the classifier are its own";
    EXPECT_EQ(job.metadata().at("cosformer.tokenizer"), tokens->hash());
    // The same ids, shifted by the two that are kept.
    const data::Batch batch = data::make_batch(*task_data.train, std::vector<std::uint32_t>{0}, {});
    const std::vector<std::int32_t> ids = tokens->encode("the cat sat");
    for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(batch.first.tokens[at], ids[at] + data::kFirstToken);
  }
}

TEST_F(FineTuning, RefusesOtherShapesAndTasks) {
  pretrain("mlm", {});
  EXPECT_NE(message_of<UserError>([&] { fine_tuning({"model.layers=3"}); }).find("model.layers is 3"),
            std::string::npos);
  EXPECT_NE(message_of<UserError>([&] { fine_tuning({"data.task=listops"}); }).find("classifiers of text"),
            std::string::npos);
  EXPECT_NO_THROW(fine_tuning({"model.layers=1"}));
}

TEST_F(FineTuning, TheClassifierHasASayInWhatTheLanguageModelHasNone) {
  pretrain("mlm", {});
  const runs::RunConfig config = fine_tuning({"model.dropout=0.3", "model.pooling=cls", "model.pooled_norm=batch"});
  EXPECT_EQ(config.model.dropout, 0.3);
  EXPECT_EQ(config.model.pooling, "cls");
  EXPECT_EQ(config.model.pooled_norm, "batch");
  EXPECT_EQ(config.model.layers, 1);
}

TEST_F(FineTuning, LowerLayersLearnMoreSlowly) {
  pretrain("mlm", {"model.layers=2"});
  const runs::RunConfig config = fine_tuning({"train.layer_decay=0.5"});
  const data::TaskData task = tokenized(data::open_task(uncut(config.data)), *data::byte_tokenizer(), 32);
  const ClassificationJob job(config, task);
  EXPECT_TRUE(job.has_rates());
  EXPECT_EQ(job.rate_of("output.weight"), 1);
  EXPECT_EQ(job.rate_of("encoder.norm.weight"), 1);
  EXPECT_EQ(job.rate_of("encoder.block_1.attention.out_proj.weight"), 0.5);
  EXPECT_EQ(job.rate_of("encoder.block_0.attention.out_proj.weight"), 0.25);
  EXPECT_EQ(job.rate_of("encoder.token_embedding.weight"), 0.125);
}

}  // namespace
}  // namespace cosformer::train
