#include "train/jobs/trained_classifier.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/table.h"
#include "data/tokenizers/tokenized_text.h"
#include "models/longest_input.h"
#include "models/trained_weights.h"
#include "runs/device.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/initial_weights.h"
#include "train/inputs/batching.h"

namespace cosformer::train {

TrainedClassifier::TrainedClassifier(const std::string& run, const std::string& device)
    : run_(run),
      config_(runs::read_run(run)),
      tokenizer_(runs::tokenizer_of_classifier(run)),
      model_(runs::load_trained_classifier(run)),
      trained_length_(model_->config().input.max_length),
      device_([&] {
        config_.train.device = device;
        return runs::device_of(config_.train);
      }()) {
  model_->to(device_);
}

data::DataConfig TrainedClassifier::reading() const {
  return input().image_width > 0 ? config_.data : uncut(config_.data);
}

std::optional<std::int64_t> TrainedClassifier::most() const {
  if (tokenizer_) return trained_length_;  // what data.max_length said: such runs cannot do without
  std::optional<std::int64_t> longest = models::longest_input(model_->config());
  const std::int64_t asked = input().image_width > 0 ? 0 : data::effective_max_length(config_.data);
  if (asked > 0) longest = std::min(longest.value_or(asked), asked);
  return longest;
}

ReadData TrainedClassifier::read(const data::DatasetPointer& dataset) const {
  const std::optional<std::int64_t> longest = most();
  ReadData result;
  result.dataset =
      tokenizer_ ? data::tokenize_dataset(dataset, *tokenizer_, longest ? *longest + 1 : 0) : dataset;  // shows cuts
  for (std::size_t i = 0; i < result.dataset->size(); ++i) {
    const data::Lengths lengths = result.dataset->lengths(i);
    const std::int64_t length = std::max(lengths.first, lengths.second);
    result.is_cut.push_back(longest && length > *longest);
    if (result.is_cut.back()) {
      ++result.cut;
    } else if (length > trained_length_) {
      ++result.beyond;
    }
  }
  if (longest) result.dataset = data::shorten(result.dataset, *longest);
  return result;
}

std::string TrainedClassifier::unit() const {
  if (input().image_width > 0) return "pixels";
  if (tokenizer_ || config_.data.task == "token_sequences") return "tokens";
  if (config_.data.task == "listops") return "symbols";
  return config_.data.task == "value_sequences" ? "numbers" : "bytes";
}

std::string TrainedClassifier::about_lengths(std::size_t cut, std::size_t beyond) const {
  const auto count = [](std::size_t number) {
    return with_commas(static_cast<long long>(number)) + (number == 1 ? " input is" : " inputs are");
  };
  const auto length = [&](std::int64_t number) { return with_commas(number) + " " + unit(); };
  std::string text;
  if (cut > 0) {
    const std::int64_t asked = data::effective_max_length(config_.data);
    const bool by_setting = tokenizer_ || (asked > 0 && *most() == asked);
    text += fmt::format("{} longer than the {} that the model reads, and what is behind them was not read: {}\n",
                        count(cut), length(*most()),
                        by_setting ? "data.max_length in its training" : models::why_not_longer(model_->config()));
  }
  if (beyond > 0) {
    text += fmt::format("{} longer than the longest of the model's training, {}; they were read to their ends\n",
                        count(beyond), length(trained_length_));
  }
  return text;
}

EvaluationOptions TrainedClassifier::options_for(const data::Dataset& dataset, std::size_t batch_size) {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const data::Lengths lengths = dataset.lengths(i);
    longest = std::max({longest, lengths.first, lengths.second});
  }
  if (longest > input().max_length) {
    const auto longer = std::make_shared<models::Classifier>(models::lengthened(model_->config(), longest));
    models::load_trained_weights(runs::best_weights_path(run_), *longer);
    longer->to(device_);
    model_ = longer;
  }
  EvaluationOptions options = evaluation_options(config_.train, input(), device_);
  if (batch_size > 0) options.batches.batch_size = batch_size;
  return options;
}

Evaluation TrainedClassifier::evaluate(const data::DatasetPointer& dataset, std::size_t batch_size,
                                       const std::function<void(std::size_t)>& progress) {
  const EvaluationOptions options = options_for(*dataset, batch_size);
  return train::evaluate(*model_, dataset, options, progress);
}

std::vector<std::vector<float>> TrainedClassifier::predict(const data::DatasetPointer& dataset,
                                                           const std::function<void(std::size_t)>& progress) {
  const EvaluationOptions options = options_for(*dataset, 0);
  return train::predict(*model_, dataset, options, progress);
}

}  // namespace cosformer::train
