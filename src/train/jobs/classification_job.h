// Training a classifier on a task.
#pragma once

#include <memory>
#include <string>

#include "data/batches/batch_stream.h"
#include "runs/run_folder.h"
#include "train/inputs/device_batch.h"
#include "train/jobs/evaluate.h"
#include "train/jobs/job.h"

namespace cosformer::train {

class ClassificationJob final : public Job {
 public:
  // Makes the model, its weights drawn by the run's seed. `task` must outlive it. `tokenizer`: the hash of the one that
  // made the task's tokens, if one did. `made`: the model as it was made, of a run that was continued; its data may
  // have changed since, and must fit (fitted_task).
  ClassificationJob(const runs::RunConfig& config, const data::TaskData& task, std::string tokenizer = "",
                    const models::ModelConfig* made = nullptr);

  models::Classifier& model() { return *model_; }

  torch::nn::Module& module() override { return *model_; }
  std::string label() const override;
  std::string model_config() const override;
  std::string data_name() const override;
  std::map<std::string, std::string> metadata() const override;
  double rate_of(const std::string& parameter) const override;
  bool has_rates() const override { return config_.train.layer_decay < 1; }
  bool is_always_the_same() const override;

  void begin(data::StreamPosition position, bool few_shapes) override;
  std::uint64_t batches_in_first_epoch() const override { return stream_->batches_in_first_epoch(); }
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
  const data::DatasetPointer& part_of(Part part) const;
  bool mirrors() const { return config_.train.flip && task_.train->info().width > 0; }

  runs::RunConfig config_;
  const data::TaskData& task_;
  std::string tokenizer_;
  at::Device device_;
  std::shared_ptr<models::Classifier> model_;
  std::unique_ptr<data::BatchStream> stream_;
  bool few_shapes_ = false;
};

PartResult part_result(const Evaluation& evaluation);

}  // namespace cosformer::train
