// A trained classifier at work on data sets that it has not seen: it reads them as far as the model can, whatever the
// longest sequence of its training, and says what it did not read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "models/classifier.h"
#include "runs/run_folder.h"
#include "train/jobs/evaluate.h"

namespace cosformer::train {

// A data set as the model reads it.
struct ReadData {
  data::DatasetPointer dataset;
  std::vector<bool> is_cut;  // examples that are longer than it reads
  std::size_t cut = 0;       // their number
  std::size_t beyond = 0;    // others that are longer than any of its training
};

class TrainedClassifier {
 public:
  // Throws UserError for a folder that is no run of a classifier, or not trained yet.
  TrainedClassifier(const std::string& run, const std::string& device);

  const runs::RunConfig& config() const { return config_; }
  const models::InputConfig& input() const { return model_->config().input; }
  bool has_tokenizer() const { return tokenizer_ != nullptr; }

  // The settings to read data with that are then given to read(): as in training, but nothing is cut.
  data::DataConfig reading() const;
  // Texts in the model's tokens where it has a tokenizer, and of the length that it reads.
  ReadData read(const data::DatasetPointer& dataset) const;

  // The greatest length; nothing: none.
  std::optional<std::int64_t> most() const;
  // "bytes", "tokens", "symbols", "numbers", "pixels": what lengths count.
  std::string unit() const;
  // What is to be said of a number of cut and of unusually long inputs, a line each; empty: nothing.
  std::string about_lengths(std::size_t cut, std::size_t beyond) const;

  // Both of what read() gave. `batch_size` 0: as in training.
  Evaluation evaluate(const data::DatasetPointer& dataset, std::size_t batch_size,
                      const std::function<void(std::size_t)>& progress);
  std::vector<std::vector<float>> predict(const data::DatasetPointer& dataset,
                                          const std::function<void(std::size_t)>& progress);

 private:
  EvaluationOptions options_for(const data::Dataset& dataset, std::size_t batch_size);

  std::string run_;
  runs::RunConfig config_;
  data::TokenizerPointer tokenizer_;
  std::shared_ptr<models::Classifier> model_;
  std::int64_t trained_length_;
  at::Device device_;
};

}  // namespace cosformer::train
