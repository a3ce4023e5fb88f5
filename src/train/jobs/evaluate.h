// How well a model does on a part of the data.
#pragma once

#include <functional>
#include <vector>

#include "data/dataset/subset.h"
#include "train/inputs/device_batch.h"
#include "train/jobs/job.h"

namespace cosformer::train {

struct Evaluation {
  double loss = 0;      // mean cross-entropy in nats
  double accuracy = 0;  // share of examples whose likeliest class is right
  std::size_t examples = 0, batches = 0;
  double seconds = 0;
  // How many examples of class r were taken for class c, at r · classes + c. Without it the numbers above are all.
  std::vector<std::uint64_t> confusion;
};

struct EvaluationOptions {
  at::Device device = at::kCPU;
  bool bfloat16 = false;
  data::BatchOptions batches;  // order does not matter; never shuffled
  StopRequest stop;            // may be empty
};

// Both throw EvaluationStopped when asked to stop.
Evaluation evaluate(models::Classifier& model, const data::DatasetPointer& dataset, const EvaluationOptions& options,
                    const std::function<void(std::size_t examples)>& progress = {});

// Probabilities of the classes for every example, in the order of the data set.
std::vector<std::vector<float>> predict(models::Classifier& model, const data::DatasetPointer& dataset,
                                        const EvaluationOptions& options,
                                        const std::function<void(std::size_t examples)>& progress = {});

}  // namespace cosformer::train
