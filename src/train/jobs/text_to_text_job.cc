#include "train/jobs/text_to_text_job.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "data/batches/lm_batches.h"
#include "data/dataset/fingerprint.h"
#include "models/layer_pattern.h"
#include "nn/mechanisms/attention_traits.h"
#include "runs/device.h"
#include "train/inputs/batching.h"
#include "train/training_step.h"

namespace cosformer::train {
namespace {

// What writing a token of an answer takes beside one that is trained on: the decoder alone, forward alone, but a token
// at a time.
constexpr double kWorkOfWriting = 2;

void require_trainable(const runs::RunConfig& config) {
  const auto refuse = [](const std::string& what) {
    throw UserError(fmt::format("settings: {} is not for text_to_text; leave it out", what));
  };
  if (config.train.label_smoothing > 0) refuse("train.label_smoothing");
  if (!config.language.cutoffs.empty()) refuse("language.cutoffs");
  if (!config.language.tied) refuse("language.tied=false");
}

std::shared_ptr<models::EncoderDecoder> make_model(const runs::RunConfig& config, const TextToTextData& data,
                                                   at::Device device, const models::EncoderDecoderConfig* made) {
  require_trainable(config);
  models::ModelConfig model = config.model;
  model.input = {};
  model.input.vocabulary = data.tokenizer->vocabulary();
  model.input.max_length = data.task.max_length + 1;  // and <eod>
  at::manual_seed(step_seed(config.train.seed, 0));
  auto result = std::make_shared<models::EncoderDecoder>(
      made != nullptr ? *made : models::encoder_decoder_config(model, config.text_to_text, data.tokenizer->hash()));
  result->to(device);
  result->train();
  return result;
}

}  // namespace

TextToTextJob::TextToTextJob(const runs::RunConfig& config, TextToTextData data,
                             const models::EncoderDecoderConfig* made)
    : config_(config),
      data_(std::move(data)),
      device_(runs::device_of(config.train)),
      model_(make_model(config, data_, device_, made)) {}

std::string TextToTextJob::label() const {
  return models::label_of(model_->config());
}

std::string TextToTextJob::data_name() const {
  return data::fingerprint(data_.task);
}

std::string TextToTextJob::model_config() const {
  std::string text;
  for (const auto& [key, value] : metadata()) text += fmt::format("# {}\n{}\n", key, value);
  return text;
}

std::map<std::string, std::string> TextToTextJob::metadata() const {
  return models::to_metadata(model_->config());
}

bool TextToTextJob::is_always_the_same() const {
  const models::EncoderDecoderConfig& c = model_->config();
  return !models::changes_while_training(c.model) && !nn::changes_while_training(c.decoder) &&
         !nn::changes_while_training(c.cross);
}

void TextToTextJob::begin(data::StreamPosition position, bool) {
  stream_ =
      std::make_unique<data::BatchStream>(data_.task.train, batch_options(config_.train, text_input(model_->config())),
                                          static_cast<std::uint64_t>(config_.train.seed), position);
}

JobBatch TextToTextJob::next() {
  const std::optional<data::Batch> batch = stream_->next();
  if (!batch) throw std::logic_error("the stream of training batches ended");
  JobBatch result;
  result.inputs = text_to_text_inputs(*batch, data_.tokenizer->end_of_document(), device_);
  result.position = batch->position;
  result.next = batch->next;
  for (const data::SequenceBatch* texts : {&batch->first, &batch->second}) {
    for (const std::int32_t length : texts->lengths) result.tokens += length + 1;
  }
  result.places = {batch->examples.begin(), batch->examples.end()};
  return result;
}

std::string TextToTextJob::name_places(const std::vector<std::uint64_t>& places) const {
  return "the training examples " + listed(places);
}

at::Tensor TextToTextJob::loss(const StepInputs& step) {
  const auto& inputs = std::get<TextToTextInputs>(step);
  return model_->losses(target_hidden(*model_, inputs), inputs.targets).sum() /
         inputs.targets.ne(data::kNoTarget).sum();
}

const data::DatasetPointer& TextToTextJob::part_of(Part part) const {
  return part == Part::kTrain ? data_.task.train : part == Part::kValid ? data_.task.valid : data_.task.test;
}

double TextToTextJob::work_of_evaluation(Part part) const {
  const data::Dataset& pairs = *part_of(part);
  const std::int64_t longest = text_input(model_->config()).max_length;
  const double tokens = tokens_of(pairs, longest), examples = static_cast<double>(pairs.size());
  const double written = std::min(static_cast<double>(config_.text_to_text.decode_examples), examples);
  return kWorkOfReading * tokens + kWorkOfWriting * written * static_cast<double>(longest);
}

double TextToTextJob::tokens_of_an_epoch() const {
  return tokens_of(*data_.task.train, text_input(model_->config()).max_length) +
         2 * static_cast<double>(data_.task.train->size());
}

PartResult TextToTextJob::evaluate(Part part, const StopRequest& stop) {
  EvaluationOptions options = evaluation_options(config_.train, text_input(model_->config()), device_);
  options.stop = stop;
  return part_result(
      evaluate_text_to_text(*model_, part_of(part), *data_.tokenizer, config_.text_to_text.decode_examples, options));
}

std::string TextToTextJob::describe(const PartResult& result) const {
  const auto percent = [&](const std::string& name) { return significant(100 * result.at(name), 4) + "%"; };
  std::string text =
      fmt::format("loss {}, {} of tokens found", significant(result.at("loss"), 4), percent("token_accuracy"));
  if (config_.text_to_text.decode_examples > 0) text += fmt::format(", {} of answers right", percent("exact_match"));
  return text;
}

std::string TextToTextJob::describe_best(double value) const {
  return "loss " + significant(value, 4);
}

}  // namespace cosformer::train
