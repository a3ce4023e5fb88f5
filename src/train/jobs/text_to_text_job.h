// Training an encoder-decoder on pairs of texts: text to text.
#pragma once

#include <memory>

#include "data/batches/batch_stream.h"
#include "train/inputs/text_to_text_data.h"
#include "train/jobs/job.h"
#include "train/jobs/text_to_text_evaluation.h"

namespace cosformer::train {

class TextToTextJob final : public Job {
 public:
  // Makes the model, its weights drawn by the run's seed. Throws UserError for what cannot be trained.
  // `made`: the model as it was made, of a run that was continued, whose texts may be others now.
  TextToTextJob(const runs::RunConfig& config, TextToTextData data, const models::EncoderDecoderConfig* made = nullptr);

  models::EncoderDecoder& model() { return *model_; }

  torch::nn::Module& module() override { return *model_; }
  std::string label() const override;
  std::string model_config() const override;
  std::string data_name() const override;
  std::map<std::string, std::string> metadata() const override;
  bool is_always_the_same() const override;

  void begin(data::StreamPosition position, bool few_shapes) override;
  std::uint64_t batches_in_first_epoch() const override { return stream_->batches_in_first_epoch(); }
  JobBatch next() override;
  std::string name_places(const std::vector<std::uint64_t>& places) const override;
  at::Tensor loss(const StepInputs& inputs) override;

  Decision decision() const override { return {"loss", false}; }
  bool has_part(Part) const override { return true; }
  double work_of_evaluation(Part part) const override;
  double tokens_of_an_epoch() const override;
  PartResult evaluate(Part part, const StopRequest& stop) override;
  std::string describe(const PartResult& result) const override;
  std::string describe_best(double value) const override;

 private:
  const data::DatasetPointer& part_of(Part part) const;

  runs::RunConfig config_;
  TextToTextData data_;
  at::Device device_;
  std::shared_ptr<models::EncoderDecoder> model_;
  std::unique_ptr<data::BatchStream> stream_;
};

}  // namespace cosformer::train
