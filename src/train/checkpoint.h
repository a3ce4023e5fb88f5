// Checkpoints: all that a run needs to go on as if it had never stopped.
//
// RUN/checkpoints/step-00001200/ holds model.safetensors, optimizer.safetensors and checkpoint.json with the checksums
// of both and of itself. A checkpoint is written beside its place and renamed, so it is there whole or not at all; the
// last two are kept. Nothing random is stored: data order, dropout and mirroring follow from the seed and the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "nn/tensor_file.h"

namespace cosformer::train {

struct TrainState {
  std::int64_t step = 0;         // steps taken
  std::int64_t total_steps = 0;  // steps to take
  data::StreamPosition position;
  double best_accuracy = -1;
  std::int64_t best_step = 0;
  std::int64_t evaluations_since_best = 0;
  double seconds = 0;                  // since the beginning, former processes included
  double training_seconds = 0;         // of them, those spent on steps
  std::int64_t tokens = 0;             // trained on
  std::vector<double> pending_losses;  // of steps after the last line of metrics
};

struct CheckpointContent {
  nn::NamedTensors model, optimizer;
  std::string model_config;  // goes into the metadata of the weights
};

// Throws Failure (a full disk): what was there before is still there.
void save_checkpoint(const std::string& run, const TrainState& state, const CheckpointContent& content);

// Steps of the checkpoints that are there, rising.
std::vector<std::int64_t> checkpoint_steps(const std::string& run);

// Fills the tensors. Throws UserError when it is damaged; the message names the newest intact one before it.
TrainState load_checkpoint(const std::string& run, std::int64_t step, const CheckpointContent& content);

std::string checkpoint_path(const std::string& run, std::int64_t step);

}  // namespace cosformer::train
