// Training a language model on a text: autoregressive (lm) or masked (mlm).
#pragma once

#include <memory>

#include "train/inputs/language_batch.h"
#include "train/inputs/language_data.h"
#include "train/jobs/job.h"
#include "train/jobs/language_evaluation.h"

namespace cosformer::train {

// What the settings and the tokenizer make of the model. Throws UserError where they do not go together.
models::LanguageModelConfig language_model_config(const runs::RunConfig& config, const data::Tokenizer& tokenizer);

// How a run's settings evaluate; `model` tells how far the state can be carried.
LanguageEvaluationOptions language_evaluation_options(const runs::RunConfig& config, const models::LanguageModel& model,
                                                      at::Device device);

class LanguageJob final : public Job {
 public:
  // Makes the model, its weights drawn by the run's seed. Throws UserError for what cannot be trained.
  LanguageJob(const runs::RunConfig& config, const LanguageData& data);

  models::LanguageModel& model() { return *model_; }

  torch::nn::Module& module() override { return *model_; }
  std::string label() const override;
  std::string model_config() const override;
  std::string data_name() const override;
  std::map<std::string, std::string> metadata() const override;
  bool is_always_the_same() const override;

  void begin(data::StreamPosition position, bool few_shapes) override;
  std::uint64_t batches_in_first_epoch() const override;
  JobBatch next() override;
  std::string name_places(const std::vector<std::uint64_t>& places) const override;
  at::Tensor loss(const StepInputs& inputs) override;
  nn::NamedTensors carried() const override;
  void restore_carried(const nn::NamedTensors& carried) override;

  Decision decision() const override { return {"loss", false}; }
  bool has_part(Part part) const override { return part_of(part).tokens() > 0; }
  double work_of_evaluation(Part part) const override;
  double tokens_of_an_epoch() const override { return static_cast<double>(corpus_.train.tokens()); }
  PartResult evaluate(Part part, const StopRequest& stop) override;
  std::string describe(const PartResult& result) const override;
  std::string describe_best(double value) const override;

 private:
  bool is_masked() const { return config_.data.task == "mlm"; }
  const data::CorpusPart& part_of(Part part) const;
  at::Tensor masked_loss(const StepInputs& inputs);
  at::Tensor carried_loss(const LanguageInputs& inputs);

  runs::RunConfig config_;
  data::Corpus corpus_;
  at::Device device_;
  std::shared_ptr<models::LanguageModel> model_;
  std::unique_ptr<data::LmBatches> batches_;
  data::StreamPosition position_, first_;
  // Of data.carry: what the windows before left, after how many of them. The state of the next window is this one, or
  // none where a row begins anew, which follows from the position alone.
  models::LmState state_;
  std::int64_t windows_behind_ = 0;
};

}  // namespace cosformer::train
