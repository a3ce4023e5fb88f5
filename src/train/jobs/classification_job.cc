#include "train/jobs/classification_job.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "data/dataset/fingerprint.h"
#include "models/layer_pattern.h"
#include "runs/device.h"
#include "train/inputs/batching.h"
#include "train/inputs/image_symmetries.h"
#include "train/training_step.h"

namespace cosformer::train {
namespace {

// The number of pixels above 0 of the fullest image.
std::int64_t most_drawn(const data::Dataset& images) {
  std::int64_t most = 1;
  std::vector<float> pixels;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const data::SequenceView image = images.get(i).first;
    pixels.resize(image.size);
    image.copy_values(image.size, 1, pixels.data());
    most = std::max<std::int64_t>(most, std::count_if(pixels.begin(), pixels.end(), [](float p) { return p != 0; }));
  }
  return most;
}

std::shared_ptr<models::Classifier> make_model(const runs::RunConfig& config, const data::TaskData& task,
                                               at::Device device, const models::ModelConfig* made) {
  const data::DatasetInfo& info = task.train->info();
  if (config.train.rotate && (info.width == 0 || info.width != info.height)) {
    throw UserError(
        fmt::format("settings: train.rotate turns square images; the data set '{}' holds {}. Set train.rotate=false",
                    info.name, info.width == 0 ? "none" : fmt::format("images of {} x {}", info.width, info.height)));
  }
  models::ModelConfig model = config.model;
  model.input = runs::input_of(task);
  if (model.skip_blank && model.input.image_width > 0) model.input.most_drawn = most_drawn(*task.train);
  if (made != nullptr) model = *made;
  at::manual_seed(step_seed(config.train.seed, 0));
  auto result = std::make_shared<models::Classifier>(model);
  result->to(device);
  result->train();
  return result;
}

std::int64_t tokens_of(const data::Batch& batch) {
  std::int64_t count = 0;
  for (const std::int32_t length : batch.first.lengths) count += length;
  for (const std::int32_t length : batch.second.lengths) count += length;
  return count;
}

std::string percent(double share) {
  return significant(100 * share, 4) + "%";
}

}  // namespace

ClassificationJob::ClassificationJob(const runs::RunConfig& config, const data::TaskData& task, std::string tokenizer,
                                     const models::ModelConfig* made)
    : config_(config),
      task_(task),
      tokenizer_(std::move(tokenizer)),
      device_(runs::device_of(config.train)),
      model_(make_model(config, task, device_, made)) {}

std::string ClassificationJob::label() const {
  return models::label_of(config_.model);
}

std::string ClassificationJob::data_name() const {
  return data::fingerprint(task_);
}

std::string ClassificationJob::model_config() const {
  return to_toml(model_->config());
}

std::map<std::string, std::string> ClassificationJob::metadata() const {
  std::map<std::string, std::string> metadata{{"cosformer.model", model_config()}};
  if (!tokenizer_.empty()) metadata["cosformer.tokenizer"] = tokenizer_;
  return metadata;
}

double ClassificationJob::rate_of(const std::string& parameter) const {
  const std::int64_t layers = model_->config().layers;
  std::int64_t depth = layers + 1;  // the last norm and the classifier
  const std::string block = "encoder.block_";
  if (parameter.starts_with(block)) {
    depth = 1 + std::stoll(parameter.substr(block.size()));
  } else if (parameter.find("embedding") != std::string::npos) {
    depth = 0;
  }
  return std::pow(config_.train.layer_decay, static_cast<double>(layers + 1 - depth));
}

bool ClassificationJob::is_always_the_same() const {
  return !models::changes_while_training(model_->config());
}

void ClassificationJob::begin(data::StreamPosition position, bool few_shapes) {
  few_shapes_ = few_shapes && config_.train.token_budget > 0 && config_.train.batch_size == 0;
  stream_ = std::make_unique<data::BatchStream>(task_.train, batch_options(config_.train, model_->config().input),
                                                static_cast<std::uint64_t>(config_.train.seed), position);
}

// Where steps are captured in graphs, batches cut by a token budget are filled up, so that there are as many shapes as
// widths.
JobBatch ClassificationJob::next() {
  const std::optional<data::Batch> batch = stream_->next();
  if (!batch) throw std::logic_error("the stream of training batches ended");
  const std::int64_t width = batch->first.width + batch->second.width;
  DeviceBatch on_device =
      few_shapes_ && width > 0
          ? to_device_filled(*batch, device_, std::max<std::int64_t>(config_.train.token_budget / width, 1))
          : to_device(*batch, device_);
  if (mirrors() || config_.train.rotate) {
    const bool begun = batch->position.epoch >= static_cast<std::uint64_t>(config_.train.plain_epochs);
    on_device.symmetries = at::full({}, begun ? 1.0F : 0.0F, at::TensorOptions(device_));
  }
  return {std::move(on_device),
          batch->position,
          batch->next,
          tokens_of(*batch),
          {batch->examples.begin(), batch->examples.end()}};
}

std::string ClassificationJob::name_places(const std::vector<std::uint64_t>& places) const {
  return "the training examples " + listed(places);
}

at::Tensor ClassificationJob::loss(const StepInputs& inputs) {
  auto batch = std::get<DeviceBatch>(inputs);
  const data::DatasetInfo& info = task_.train->info();
  at::Tensor& content = batch.first.content;
  if (mirrors()) content = mirrored(content, info.width, info.height, batch.symmetries);
  if (config_.train.rotate) content = rotated(content, info.width, batch.symmetries);
  return classification_loss(*model_, batch, config_.train.label_smoothing);
}

PartResult ClassificationJob::evaluate(Part part, const StopRequest& stop) {
  EvaluationOptions options = evaluation_options(config_.train, model_->config().input, device_);
  options.stop = stop;
  return part_result(train::evaluate(*model_, part_of(part), options));
}

const data::DatasetPointer& ClassificationJob::part_of(Part part) const {
  return part == Part::kTrain ? task_.train : part == Part::kValid ? task_.valid : task_.test;
}

double ClassificationJob::work_of_evaluation(Part part) const {
  return kWorkOfReading * tokens_of(*part_of(part), model_->config().input.max_length);
}

double ClassificationJob::tokens_of_an_epoch() const {
  return tokens_of(*task_.train, model_->config().input.max_length);
}

std::string ClassificationJob::describe(const PartResult& result) const {
  return fmt::format("loss {}, accuracy {}", significant(result.at("loss"), 4), percent(result.at("accuracy")));
}

std::string ClassificationJob::describe_best(double value) const {
  return "accuracy " + percent(value);
}

PartResult part_result(const Evaluation& evaluation) {
  return {{{"loss", evaluation.loss}, {"accuracy", evaluation.accuracy}},
          {{"examples", evaluation.examples}},
          evaluation.seconds,
          evaluation.batches};
}

}  // namespace cosformer::train
