// Checkpoints: all that a run needs to go on as if it had never stopped.
//
// RUN/checkpoints/step-00001200/ holds model.safetensors, optimizer.safetensors, where a step hands tensors to the next
// carried.safetensors, and checkpoint.json with the checksums of these and of itself. A checkpoint is written beside
// its place and renamed, so it is there whole or not at all; the last two are kept. Nothing random is stored: data
// order, dropout and mirroring follow from the seed and the step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/batch.h"
#include "nn/tensor_file.h"

namespace cosformer::runs {

struct TrainState {
  std::int64_t step = 0;         // steps taken
  std::int64_t total_steps = 0;  // steps to take
  data::StreamPosition position;
  std::optional<double> best;       // value of the metric that decides
  std::optional<double> best_loss;  // of the same evaluation; the lower of two equally good ones is better
  std::int64_t best_step = 0;
  bool evaluation_is_due = false;  // of this step: it was not made, or not to its end
  std::int64_t evaluations_since_best = 0;
  double seconds = 0;                      // since the beginning, former processes included
  double training_seconds = 0;             // of them, those spent on steps
  std::int64_t tokens = 0;                 // trained on
  std::vector<double> pending_losses;      // of steps after the last line of metrics
  double rate = -1;                        // the learning rate of the last step; -1 where older versions did not say
  std::vector<std::int64_t> continued_at;  // the steps at which --continue went on with the run
  double rate_before = 0;                  // the learning rate of the last of these steps
  std::string data_name;                   // of what it was trained on; empty where older versions did not say
};

struct CheckpointContent {
  nn::NamedTensors model, optimizer;
  std::string model_config;       // goes into the metadata of the weights
  nn::NamedTensors carried = {};  // from step to step, of shapes that may change
};

// Throws Failure (a full disk): what was there before is still there.
void save_checkpoint(const std::string& run, const TrainState& state, const CheckpointContent& content);

// Steps of the checkpoints that are there, rising.
std::vector<std::int64_t> checkpoint_steps(const std::string& run);

// What the newest checkpoint says of itself, its tensors not looked at; nothing where there is none that can be read.
std::optional<TrainState> newest_state(const std::string& run);

// Fills the tensors but `carried`, whose shapes only the file knows. Throws UserError when it is damaged (the message
// names the newest intact one before it) and when it was trained on other data than those of the name, unless it is of
// a time when the run had been continued less often than `continued`: with --continue other data may come.
TrainState load_checkpoint(const std::string& run, std::int64_t step, const CheckpointContent& content,
                           const std::string& data_name, std::int64_t continued = 0);

// Removes what a process that was killed while it wrote or removed a checkpoint has left. For who holds the run's lock.
void remove_unfinished_checkpoints(const std::string& run);

// What was carried; nothing when nothing was. Only of a checkpoint that load_checkpoint has accepted.
nn::NamedTensors load_carried(const std::string& run, std::int64_t step);

std::string checkpoint_path(const std::string& run, std::int64_t step);

}  // namespace cosformer::runs
