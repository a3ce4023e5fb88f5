// Training a language model to recall: texts of pairs and queries, the values behind queried keys to be predicted.
#pragma once

#include <memory>

#include "runs/run_config.h"
#include "train/jobs/job.h"
#include "train/jobs/recall_evaluation.h"

namespace cosformer::train {

// A causal one whose tokens are the task's. Throws UserError for settings that contradict the task or each other.
models::LanguageModelConfig recall_model_config(const runs::RunConfig& config);

// Texts of a part, after data.generate_train and so on.
std::uint64_t recall_texts_of(const runs::RunConfig& config, Part part);

// For a part of the task: device, rows and seeds as the settings say.
RecallEvaluationOptions recall_evaluation_options(const runs::RunConfig& config, Part part, at::Device device);

// Of the texts alone: "recall: 1 to 16 pairs …; 100,000 training texts an epoch, …".
std::string describe_recall(const runs::RunConfig& config);
// Another one for other texts.
std::string recall_data_name(const runs::RunConfig& config);

class RecallJob final : public Job {
 public:
  // Makes the model, its weights drawn by the run's seed. Throws UserError for what cannot be trained.
  explicit RecallJob(const runs::RunConfig& config);

  models::LanguageModel& model() { return *model_; }

  torch::nn::Module& module() override { return *model_; }
  std::string label() const override;
  std::string model_config() const override;
  std::string data_name() const override { return recall_data_name(config_); }
  std::map<std::string, std::string> metadata() const override;
  bool is_always_the_same() const override;

  void begin(data::StreamPosition position, bool few_shapes) override;
  // What does not fill a batch at the end of an epoch is left out; every epoch has new texts.
  std::uint64_t batches_in_first_epoch() const override { return batches_; }
  JobBatch next() override;
  std::string name_places(const std::vector<std::uint64_t>& places) const override;
  at::Tensor loss(const StepInputs& inputs) override;

  Decision decision() const override { return {"accuracy", true}; }
  bool has_part(Part) const override { return true; }
  double work_of_evaluation(Part part) const override;
  double tokens_of_an_epoch() const override;
  PartResult evaluate(Part part, const StopRequest& stop) override;
  std::string describe(const PartResult& result) const override;
  std::string describe_best(double value) const override;

 private:
  runs::RunConfig config_;
  at::Device device_;
  std::shared_ptr<models::LanguageModel> model_;
  std::uint64_t rows_ = 0, batches_ = 0;  // of a batch, of an epoch
  data::StreamPosition position_;
};

}  // namespace cosformer::train
