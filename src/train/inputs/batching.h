// How a run's settings cut data into batches, for training, evaluation and prediction alike.
#pragma once

#include "data/batches/epoch_plan.h"
#include "runs/run_folder.h"
#include "train/jobs/evaluate.h"

namespace cosformer::train {

data::BatchOptions batch_options(const runs::TrainConfig& config, const models::InputConfig& input);

EvaluationOptions evaluation_options(const runs::TrainConfig& config, const models::InputConfig& input,
                                     at::Device device);

// Rows of a batch whose rows all have this many tokens; at least 1.
std::int64_t rows_of_width(const runs::TrainConfig& config, std::int64_t width);

// Of all sequences, each cut to `longest`.
double tokens_of(const data::Dataset& dataset, std::int64_t longest);

}  // namespace cosformer::train
