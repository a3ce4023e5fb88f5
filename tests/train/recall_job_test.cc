// Recall: batches, exact going on, evaluation by pairs and distance, and what is refused.
#include "train/jobs/recall_job.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "runs/language_run.h"
#include "runs/trained_models.h"
#include "train/recall_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;

class RecallResume : public ::testing::TestWithParam<const char*> {};

TEST_P(RecallResume, InterruptedEqualsUninterrupted) {
  const TemporaryDirectory folder;
  const runs::RunConfig config = small_recall_run({std::string("model.attention=") + GetParam()});
  expect_exact_resume(folder, [&](const std::string& run, Watched& w) { return train_recall_in(run, config, w); });
}

INSTANTIATE_TEST_SUITE_P(Recall, RecallResume, ::testing::Values("cosformer_plus", "softmax", "performer"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RecallJob, BatchesAreTheTextsByNumberAndEpochsHaveNewOnes) {
  const runs::RunConfig config = small_recall_run({"data.generate_train=19", "train.seed=6", "data.generate_seed=2"});
  RecallJob job(config);
  EXPECT_EQ(job.batches_in_first_epoch(), 2U);
  job.begin({0, 0}, false);
  std::uint64_t number = 0;
  for (const data::StreamPosition& position : {data::StreamPosition{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}}) {
    const JobBatch batch = job.next();
    EXPECT_EQ(batch.position, position);
    const auto& inputs = std::get<MaskedInputs>(batch.inputs);
    std::vector<std::int64_t> places, targets;
    for (std::int64_t row = 0; row < 8; ++row, ++number) {
      const data::RecallText text = data::recall_text(config.recall, {2, 6}, data::RecallPart::kTrain, number);
      EXPECT_TRUE(at::equal(inputs.tokens[row].to(at::kInt), at::tensor(text.tokens).to(at::kInt))) << number;
      for (const data::RecallQuery& query : text.queries) {
        places.push_back(32 * row + query.place);
        targets.push_back(text.tokens[static_cast<std::size_t>(query.place) + 1]);
      }
    }
    ASSERT_EQ(inputs.targets.sizes(), (at::IntArrayRef{1, 8 * 4}));  // as many as there can be: always one shape
    places.resize(32, 0);
    targets.resize(32, data::kNoTarget);
    EXPECT_TRUE(at::equal(inputs.places, at::tensor(places)));
    EXPECT_TRUE(at::equal(inputs.targets[0], at::tensor(targets)));
  }
  EXPECT_NE(message_of<UserError>([&] {
              job.begin({0, 2}, false);
            }).find("the epoch has 2 batches"),
            std::string::npos);
}

TEST(RecallEvaluation, CountsWhatTheModelSays) {
  const runs::RunConfig config = small_recall_run({"recall.values=3", "recall.pairs=6", "data.generate_test=37"});
  RecallJob job(config);
  RecallEvaluationOptions options = recall_evaluation_options(config, Part::kTest, at::kCPU);
  EXPECT_EQ(options.rows, 8);
  const RecallEvaluation e = evaluate_recall(job.model(), config.recall, options);
  // The same a text and a query at a time.
  const at::NoGradGuard no_grad;
  job.model().eval();
  double nats = 0;
  std::uint64_t queries = 0, right = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::uint64_t, std::uint64_t>> pairs, distances;
  const auto range_of = [](std::int64_t n, std::int64_t most) {
    std::int64_t last = 1;
    while (last < n) last *= 2;
    return std::pair{last == 1 ? 1 : last / 2 + 1, std::min(last, most)};
  };
  for (std::uint64_t number = 0; number < 37; ++number) {
    const data::RecallText text = data::recall_text(config.recall, options.seeds, data::RecallPart::kTest, number);
    const at::Tensor logits = job.model().forward(at::tensor(text.tokens).unsqueeze(0))[0];
    for (const data::RecallQuery& query : text.queries) {
      const std::int64_t wanted = text.tokens[static_cast<std::size_t>(query.place) + 1];
      const at::Tensor said = logits[query.place];
      nats -= said.log_softmax(-1)[wanted].item<double>();
      const bool hit = said.argmax().item<std::int64_t>() == wanted;
      ++queries;
      right += hit ? 1 : 0;
      for (auto* counts : {&pairs[range_of(text.pairs, 6)], &distances[range_of(query.distance, 32)]}) {
        ++counts->first;
        counts->second += hit ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(e.texts, 37U);
  EXPECT_EQ(e.batches, 5U);
  EXPECT_EQ(e.queries, queries);
  EXPECT_EQ(e.right, right);
  EXPECT_GT(right, 0U);
  EXPECT_NEAR(e.nats, nats, 1e-4 * nats);
  for (const auto& [ranges, counts] : {std::pair{&e.by_pairs, &pairs}, {&e.by_distance, &distances}}) {
    ASSERT_EQ(ranges->size(), counts->size());
    for (const RecallRange& range : *ranges) {
      const auto& expected = counts->at({range.first, range.last});
      EXPECT_EQ(range.queries, expected.first);
      EXPECT_EQ(range.right, expected.second);
    }
  }
  const PartResult result = part_result(e);
  EXPECT_EQ(result.at("accuracy"), e.accuracy());
  EXPECT_EQ(result.at("accuracy_pairs_3_4"), e.by_pairs[2].accuracy());
  EXPECT_EQ(result.at("accuracy_pairs_5_6"), e.by_pairs[3].accuracy());
}

TEST(RecallJob, ItsModelsAreToldFromOthers) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run");
  Watched watched;
  train_recall_in(run, small_recall_run({"train.steps=1"}), watched);
  EXPECT_EQ(runs::load_trained_recall_model(run)->config().model.input.vocabulary, 36);
  for (const auto& open : std::vector<std::function<void()>>{[&] { runs::load_trained_classifier(run); },
                                                             [&] { runs::load_trained_language_model(run); },
                                                             [&] { runs::open_language_run(run); }}) {
    EXPECT_NE(message_of<UserError>(open).find("is a recall model"), std::string::npos);
  }
}

TEST(RecallJob, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [&](const std::vector<std::string>& assignments) {
    return message_of<UserError>([&] { RecallJob(small_recall_run(assignments)); });
  };
  EXPECT_NE(refusal({"model.causal=false"}).find("recall reads forward"), std::string::npos);
  EXPECT_NE(refusal({"recall.pairs=20"}).find("recall.keys (16)"), std::string::npos);
  EXPECT_NE(refusal({"data.path=somewhere"}).find("leave --data out"), std::string::npos);
  EXPECT_NE(refusal({"data.generate_train=7"}).find("a batch has 8 texts"), std::string::npos);
  EXPECT_NE(refusal({"model.attention=nystromformer"}).find("nystromformer"), std::string::npos);
}

TEST(RecallJob, OtherTextsHaveAnotherName) {
  const std::string name = recall_data_name(small_recall_run({}));
  EXPECT_EQ(recall_data_name(small_recall_run({"train.seed=9", "train.lr=0.5"})), name);
  for (const char* other : {"recall.pairs=3", "recall.needle=true", "data.generate_seed=1", "data.generate_test=31"}) {
    EXPECT_NE(recall_data_name(small_recall_run({other})), name) << other;
  }
}

}  // namespace
}  // namespace cosformer::train
