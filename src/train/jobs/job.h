// What is trained, as the trainer sees it: a module, its batches, the loss of one, and how well it does. The trainer
// owns steps, schedule, checkpoints and metrics, and knows neither classes nor tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "data/batches/batch.h"
#include "nn/tensor_file.h"
#include "runs/train_config.h"
#include "train/inputs/step_inputs.h"

namespace cosformer::train {

// A batch on the device.
struct JobBatch {
  StepInputs inputs;
  data::StreamPosition position, next;
  std::int64_t tokens = 0;
  std::vector<std::uint64_t> places;  // what it was made of, for messages: Job::name_places
};

// How well a model does on a part of the data.
struct PartResult {
  std::vector<std::pair<std::string, double>> metrics;         // as in metrics.jsonl, without the part's name
  std::vector<std::pair<std::string, std::uint64_t>> amounts;  // what it was measured on: {"examples", 100}
  double seconds = 0;
  std::uint64_t batches = 0;

  // Throws std::out_of_range for a metric that is not there.
  double at(const std::string& name) const;
};

// Which metric decides about the best weights.
struct Decision {
  std::string metric;
  bool higher_is_better = true;

  // Of two equal values the one with the lower loss is better.
  bool prefers(double value, double loss, std::optional<double> best, std::optional<double> best_loss) const;
};

// Asked between two batches of an evaluation; true ends it by throwing EvaluationStopped.
using StopRequest = std::function<bool()>;
struct EvaluationStopped {};

enum class Part { kTrain, kValid, kTest };
std::string part_name(Part part);  // "train", "valid", "test"

std::string listed(const std::vector<std::uint64_t>& numbers);  // "3, 5"

// What a token that is only read takes beside one that is trained on: a third of the arithmetic, in batches that are
// not always as good.
inline constexpr double kWorkOfReading = 0.4;

class Job {
 public:
  virtual ~Job() = default;

  virtual torch::nn::Module& module() = 0;
  virtual std::string label() const = 0;         // for tables: the attention
  virtual std::string model_config() const = 0;  // as text; goes into checkpoints
  virtual std::string data_name() const = 0;     // another one for other data (data/dataset/fingerprint.h); likewise
  // What goes beside the best weights so that they can be used again.
  virtual std::map<std::string, std::string> metadata() const = 0;
  // A factor of the learning rate of a parameter.
  virtual double rate_of(const std::string& /*parameter*/) const { return 1; }
  virtual bool has_rates() const { return false; }  // not all are 1
  // Whether every step is the same program, so that it may be captured.
  virtual bool is_always_the_same() const = 0;

  // Batches from `position` on. With `few_shapes`, batches are filled up so that there are few different ones.
  virtual void begin(data::StreamPosition position, bool few_shapes) = 0;
  virtual std::uint64_t batches_in_first_epoch() const = 0;
  virtual JobBatch next() = 0;
  virtual std::string name_places(const std::vector<std::uint64_t>& places) const = 0;  // "the examples 3, 5"

  // The mean loss of a batch, in the current autocast scope.
  virtual at::Tensor loss(const StepInputs& inputs) = 0;
  // What besides weights and the optimiser's state one step hands to the next, and going on with it; before begin().
  virtual nn::NamedTensors carried() const { return {}; }
  virtual void restore_carried(const nn::NamedTensors& /*carried*/) {}

  virtual Decision decision() const = 0;
  virtual bool has_part(Part part) const = 0;
  // Before any was made, for an estimate: what an evaluation takes, in training tokens that would take as long.
  virtual double work_of_evaluation(Part part) const = 0;
  virtual double tokens_of_an_epoch() const = 0;
  virtual PartResult evaluate(Part part, const StopRequest& stop) = 0;
  virtual std::string describe(const PartResult& result) const = 0;  // "loss 0.31, accuracy 90.1%"
  virtual std::string describe_best(double value) const = 0;         // "accuracy 90.1%"

  std::int64_t parameter_count();
};

}  // namespace cosformer::train
