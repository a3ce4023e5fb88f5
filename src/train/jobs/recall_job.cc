#include "train/jobs/recall_job.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/sha256.h"
#include "base/share.h"
#include "base/table.h"
#include "models/language/language_model_file.h"
#include "nn/mechanisms/attention_traits.h"
#include "runs/device.h"
#include "train/inputs/batching.h"
#include "train/inputs/recall_batch.h"
#include "train/training_step.h"

namespace cosformer::train {
namespace {

constexpr std::int64_t kTrainingTexts = 100'000, kOtherTexts = 2'000;  // where the settings say 0

data::RecallSeeds seeds_of(const runs::RunConfig& config) {
  return {static_cast<std::uint64_t>(config.data.generate_seed), static_cast<std::uint64_t>(config.train.seed)};
}

std::shared_ptr<models::LanguageModel> make_model(const runs::RunConfig& config, at::Device device) {
  const models::LanguageModelConfig model = recall_model_config(config);
  at::manual_seed(step_seed(config.train.seed, 0));
  auto result = std::make_shared<models::LanguageModel>(model);
  result->to(device);
  result->train();
  return result;
}

}  // namespace

models::LanguageModelConfig recall_model_config(const runs::RunConfig& config) {
  data::require_possible(config.recall);
  if (!config.data.path.empty()) {
    throw UserError(
        fmt::format("the texts of recall are generated, and '{}' is not read; leave --data out", config.data.path));
  }
  models::LanguageModelConfig model;
  model.model = config.model;
  model.model.causal = true;
  model.model.input = {};
  model.model.input.vocabulary = config.recall.vocabulary();
  model.model.input.max_length = config.recall.length;
  model.language = config.language;
  return model;
}

std::uint64_t recall_texts_of(const runs::RunConfig& config, Part part) {
  const std::int64_t asked = part == Part::kTrain   ? config.data.generate_train
                             : part == Part::kValid ? config.data.generate_valid
                                                    : config.data.generate_test;
  return static_cast<std::uint64_t>(asked > 0 ? asked : part == Part::kTrain ? kTrainingTexts : kOtherTexts);
}

RecallEvaluationOptions recall_evaluation_options(const runs::RunConfig& config, Part part, at::Device device) {
  RecallEvaluationOptions options;
  options.device = device;
  options.bfloat16 = runs::uses_bfloat16(config.train, device);
  options.rows = config.train.eval_batch_size > 0 ? config.train.eval_batch_size
                                                  : rows_of_width(config.train, config.recall.length);
  options.texts = recall_texts_of(config, part);
  // Of the training texts, of which there is no end, as many as of the test.
  if (part == Part::kTrain) options.texts = std::min(options.texts, recall_texts_of(config, Part::kTest));
  options.seeds = seeds_of(config);
  options.part = part == Part::kTrain   ? data::RecallPart::kTrain
                 : part == Part::kValid ? data::RecallPart::kValid
                                        : data::RecallPart::kTest;
  return options;
}

std::string describe_recall(const runs::RunConfig& config) {
  const auto texts = [&](Part part) { return with_commas(static_cast<long long>(recall_texts_of(config, part))); };
  return fmt::format("recall: {}; {} training texts an epoch, new ones in each, {} validation, {} test texts",
                     data::describe(config.recall), texts(Part::kTrain), texts(Part::kValid), texts(Part::kTest));
}

std::string recall_data_name(const runs::RunConfig& config) {
  data::RecallConfig recall = config.recall;
  Settings settings;
  data::add_settings(settings, recall);
  std::string text = settings.toml() + std::to_string(config.data.generate_seed);
  for (const Part part : {Part::kTrain, Part::kValid, Part::kTest}) {
    text += ' ' + std::to_string(recall_texts_of(config, part));
  }
  return hexadecimal(sha256(text));
}

RecallJob::RecallJob(const runs::RunConfig& config)
    : config_(config),
      device_(runs::device_of(config.train)),
      model_(make_model(config, device_)),
      rows_(static_cast<std::uint64_t>(rows_of_width(config.train, config.recall.length))),
      batches_(recall_texts_of(config, Part::kTrain) / rows_) {
  if (batches_ == 0) {
    throw UserError(
        fmt::format("settings: a batch has {} texts, and data.generate_train makes {}; set smaller batches or more "
                    "texts",
                    rows_, recall_texts_of(config, Part::kTrain)));
  }
}

std::string RecallJob::label() const {
  return models::label_of(model_->config().model);
}

std::string RecallJob::model_config() const {
  return to_toml(model_->config());
}

std::map<std::string, std::string> RecallJob::metadata() const {
  return models::language_model_metadata(model_->config());
}

bool RecallJob::is_always_the_same() const {
  return !model_->losses_wait() && !nn::changes_while_training(model_->config().model.attention);
}

void RecallJob::begin(data::StreamPosition position, bool) {
  if (position.batch >= batches_) {
    throw UserError(
        fmt::format("cannot go on at batch {} of epoch {}: the epoch has {} batches; were the batch options changed?",
                    position.batch, position.epoch, batches_));
  }
  position_ = position;
}

JobBatch RecallJob::next() {
  std::vector<data::RecallText> texts;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t row = 0; row < rows_; ++row) {
    numbers.push_back((position_.epoch * batches_ + position_.batch) * rows_ + row);
    texts.push_back(data::recall_text(config_.recall, seeds_of(config_), data::RecallPart::kTrain, numbers.back()));
  }
  const data::LmBatch batch = data::recall_batch(texts, std::move(numbers));
  JobBatch result;
  result.inputs = recall_inputs(batch, batch.rows * data::queries_of(config_.recall, config_.recall.pairs), device_);
  result.position = position_;
  position_ = position_.batch + 1 < batches_ ? data::StreamPosition{position_.epoch, position_.batch + 1}
                                             : data::StreamPosition{position_.epoch + 1, 0};
  result.next = position_;
  result.tokens = batch.rows * batch.width;
  result.places = batch.starts;
  return result;
}

std::string RecallJob::name_places(const std::vector<std::uint64_t>& places) const {
  return "the training texts " + listed(places);
}

at::Tensor RecallJob::loss(const StepInputs& step) {
  const auto& inputs = std::get<MaskedInputs>(step);
  const at::Tensor losses = model_->losses(masked_hidden(*model_, inputs), inputs.targets);
  return losses.sum() / inputs.targets.ne(data::kNoTarget).sum();
}

double RecallJob::work_of_evaluation(Part part) const {
  return kWorkOfReading * static_cast<double>(recall_evaluation_options(config_, part, device_).texts) *
         static_cast<double>(config_.recall.length);
}

double RecallJob::tokens_of_an_epoch() const {
  return static_cast<double>(batches_ * rows_) * static_cast<double>(config_.recall.length);
}

PartResult RecallJob::evaluate(Part part, const StopRequest& stop) {
  RecallEvaluationOptions options = recall_evaluation_options(config_, part, device_);
  options.stop = stop;
  return part_result(evaluate_recall(*model_, config_.recall, options));
}

std::string RecallJob::describe(const PartResult& result) const {
  return fmt::format("loss {}, accuracy {}", significant(result.at("loss"), 4), percent(result.at("accuracy")));
}

std::string RecallJob::describe_best(double value) const {
  return "accuracy " + percent(value);
}

}  // namespace cosformer::train
