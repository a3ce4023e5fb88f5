// How a model is trained: the section [train] of a run's settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"

namespace cosformer::runs {

struct TrainConfig {
  std::string init;  // folder of a language model's run that a classifier's encoder begins as; empty: from nothing
  std::int64_t seed = 0;
  std::string device = "auto";     // auto, cpu, cuda
  std::string precision = "auto";  // auto (bf16 on a GPU, else fp32), fp32, bf16

  std::int64_t steps = 0;  // 0: as many as `epochs` need
  double epochs = 1;
  std::int64_t batch_size = 32, token_budget = 0;
  std::int64_t accumulate = 1;
  bool fixed_width = false;  // pad every batch to the greatest length: one shape for all
  std::int64_t width_multiple = 16;
  bool flip = false;              // images: mirror half of the training images
  bool rotate = false;            // square images: turn each by none to three quarters
  std::int64_t plain_epochs = 0;  // at the beginning, without either

  double lr = 1e-3, final_lr = 0;
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 0;
  double warmup_fraction = 0.1;  // of all steps, where warmup_steps is 0
  double weight_decay = 0.05, beta1 = 0.9, beta2 = 0.98, adam_eps = 1e-8;
  double clip = 1;
  double layer_decay = 1;  // the learning rate of each layer is this times that of the layer above it
  double label_smoothing = 0;

  std::int64_t log_every = 20;
  std::int64_t eval_every = 0;        // steps; 0: after each epoch
  std::int64_t eval_batch_size = 0;   // 0: as in training
  std::int64_t checkpoint_every = 0;  // steps; 0: with each evaluation
  double checkpoint_minutes = 5;      // besides; 0: not by time
  std::int64_t patience = 0;          // evaluations without a better one before an early stop; 0: none
  std::int64_t continued = 0;         // how often --continue has gone on with the run; the program counts
  bool graph = true;                  // capture the step in a CUDA graph where shapes allow
};

// How the learning rate may go on after the warm-up (train/optimiser/schedule.h).
std::vector<std::string> schedule_names();

void add_settings(Settings& settings, TrainConfig& config);  // keys "train.*"

// Throws UserError.
void require_possible(const TrainConfig& config);

}  // namespace cosformer::runs
