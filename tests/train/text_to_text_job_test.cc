// Text to text: batches, exact going on, evaluation, tokenizers, and what is refused.
#include "train/jobs/text_to_text_job.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset/array_dataset.h"
#include "models/language/lm_losses.h"
#include "runs/trained_models.h"
#include "train/inputs/batching.h"
#include "train/text_to_text_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

TEST(Seq2SeqInputs, BeginAndEndWithTheEndOfDocument) {
  data::DatasetBuilder builder(data::ElementType::kU8, true);
  builder.add_pair("ab", "xyz", data::kNoLabel);
  builder.add_pair("c", "w", data::kNoLabel);
  const auto text = builder.finish({.name = "pairs", .vocabulary = data::kByteVocabulary});
  const std::vector<std::uint32_t> both{0, 1};
  const data::Batch batch = data::make_batch(*text, both, {});
  const TextToTextInputs inputs = text_to_text_inputs(batch, 256, at::kCPU);
  EXPECT_TRUE(at::equal(inputs.source.tokens.to(at::kLong), at::tensor({97, 98, 256, 99, 256, 256}).view({2, 3})));
  EXPECT_TRUE(at::equal(inputs.source.mask.to(at::kLong), at::tensor({1, 1, 1, 1, 1, 0}).view({2, 3})));
  const std::int64_t none = models::kNoTarget;
  EXPECT_TRUE(
      at::equal(inputs.targets, at::tensor({std::int64_t{120}, std::int64_t{121}, std::int64_t{122}, std::int64_t{256},
                                            std::int64_t{119}, std::int64_t{256}, none, none})
                                    .view({2, 4})));
  EXPECT_TRUE(
      at::equal(inputs.inputs.to(at::kLong), at::tensor({256, 120, 121, 122, 256, 119, 256, 256}).view({2, 4})));
}

class Seq2SeqResume : public ::testing::TestWithParam<const char*> {};

TEST_P(Seq2SeqResume, InterruptedEqualsUninterrupted) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("pairs.tsv"), reversals(120, 6));
  const runs::RunConfig config = small_text_to_text_run(folder, {std::string("model.attention=") + GetParam()});
  expect_exact_resume(folder,
                      [&](const std::string& run, Watched& w) { return train_text_to_text_in(run, config, w); });
}

INSTANTIATE_TEST_SUITE_P(Seq2Seq, Seq2SeqResume, ::testing::Values("cosformer_plus", "softmax", "performer"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Seq2SeqEvaluation, CountsWhatTheModelSays) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("pairs.tsv"), reversals(60, 6));
  const runs::RunConfig config = small_text_to_text_run(folder, {});
  const TextToTextData data = open_text_to_text_data(config, "no such run", {});
  TextToTextJob job(config, data);
  const EvaluationOptions options = evaluation_options(config.train, text_input(job.model().config()), at::kCPU);
  const TextToTextEvaluation e = evaluate_text_to_text(job.model(), data.task.train, *data.tokenizer, 5, options);
  // The same one example at a time.
  const at::NoGradGuard no_grad;
  job.model().eval();
  double nats = 0;
  std::uint64_t tokens = 0, found = 0;
  for (std::uint32_t i = 0; i < data.task.train->size(); ++i) {
    const TextToTextInputs inputs =
        text_to_text_inputs(data::make_batch(*data.task.train, std::vector<std::uint32_t>{i}, {}), 256, at::kCPU);
    const at::Tensor hidden = target_hidden(job.model(), inputs);
    nats += job.model().losses(hidden, inputs.targets).sum().item<double>();
    tokens += static_cast<std::uint64_t>(inputs.targets.numel());
    found +=
        static_cast<std::uint64_t>(job.model().logits(hidden).argmax(-1).eq(inputs.targets).sum().item<std::int64_t>());
  }
  EXPECT_EQ(e.examples, data.task.train->size());
  EXPECT_EQ(e.tokens, tokens);
  EXPECT_NEAR(e.nats, nats, 1e-4 * nats);
  EXPECT_EQ(e.found, found);
  EXPECT_EQ(e.written, 5U);
  EXPECT_TRUE(std::isfinite(e.perplexity()));
}

TEST(Seq2SeqData, TokenizersAreLearnedFromBothColumnsAndKept) {
  const TemporaryDirectory folder;
  std::string table = "source\ttarget\n";
  for (int row = 0; row < 30; ++row)
    table += "good morning\tguten tag " + std::string(row % 2 == 0 ? "frau" : "herr") + "\n";
  write_bytes(folder.file("pairs.tsv"), table);
  const runs::RunConfig config = small_text_to_text_run(folder, {"data.tokenizer=words", "train.steps=2"});
  const std::string run = folder.file("run");
  Watched watched;
  train_text_to_text_in(run, config, watched);
  const auto model = runs::load_trained_encoder_decoder(run);
  const data::TokenizerPointer tokenizer = runs::tokenizer_of_run(run, model->config().tokenizer);
  EXPECT_EQ(tokenizer->kind_name(), "words");
  EXPECT_EQ(tokenizer->vocabulary(), 2 + 2 + 2 + 3);  // source, target's two, its third, <unk> <eos> <mask>
  EXPECT_EQ(model->config().model.input.max_length, 4);
  EXPECT_NE(message_of<UserError>([&] {
              runs::load_trained_classifier(run);
            }).find("is a text-to-text model, not a classifier"),
            std::string::npos);
  EXPECT_NE(message_of<UserError>([&] { runs::load_trained_language_model(run); }).find("not a language model"),
            std::string::npos);
}

TEST(Seq2SeqData, LongTextsAreCutAndCounted) {
  const TemporaryDirectory folder;
  std::string table = "source\ttarget\n";
  for (int row = 0; row < 10; ++row) table += "abc\tabcd\n";
  write_bytes(folder.file("pairs.tsv"), table + "abcde\tabcdef\n");
  const TextToTextData cut =
      open_text_to_text_data(small_text_to_text_run(folder, {"data.max_length=4"}), "no such run", {});
  EXPECT_EQ(cut.task.max_length, 4);
  EXPECT_EQ(cut.task.notes.back(), "2 texts are longer than 4 tokens (data.max_length) and were cut");
  const TextToTextData whole = open_text_to_text_data(small_text_to_text_run(folder, {}), "no such run", {});
  EXPECT_EQ(whole.task.max_length, 6);
  EXPECT_EQ(whole.task.notes.back(), "texts are read as bytes of 258 tokens");
}

TEST(Seq2SeqJob, RefusesWhatDoesNotGoTogether) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("pairs.tsv"), reversals(60, 6));
  const auto refusal = [&](const std::vector<std::string>& assignments) {
    return message_of<UserError>([&] {
      const runs::RunConfig config = small_text_to_text_run(folder, assignments);
      TextToTextJob(config, open_text_to_text_data(config, "no such run", {}));
    });
  };
  EXPECT_NE(refusal({"model.causal=true"}).find("leave model.causal out"), std::string::npos);
  EXPECT_NE(refusal({"model.attention=linformer"}).find("text_to_text.decoder_attention"), std::string::npos);
  EXPECT_NE(refusal({"train.label_smoothing=0.1"}).find("train.label_smoothing"), std::string::npos);
  EXPECT_NE(refusal({"language.cutoffs=10,20"}).find("language.cutoffs"), std::string::npos);
  EXPECT_NE(refusal({"text_to_text.decoder_decay=true", "model.attention=softmax"}).find("text_to_text.decoder_decay"),
            std::string::npos);
}

}  // namespace
}  // namespace cosformer::train
