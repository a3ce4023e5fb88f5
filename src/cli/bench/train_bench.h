// One measurement of training: whole optimiser steps of a classifier on random tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/timing.h"

namespace cosformer::cli {

struct TrainCase {
  std::string attention;
  std::string pattern;                   // in place of `attention`: mechanisms of the layers, separated by commas
  std::vector<std::string> assignments;  // further settings of the model: "attention.feature_map=identity"
  bool causal = false;
  long long length = 1024, batch = 4;
  long long width = 128, layers = 2, heads = 4, feed_forward = 256;
  double dropout = 0;
  bool bfloat16 = false;
  std::string device = "cpu";
  int threads = 1;
};

struct TrainMeasurement {
  Timing step;       // an optimiser step
  Timing inference;  // a forward pass without gradients or dropout
  double tokens_per_s = 0;
  double peak_bytes = 0;      // held by torch at most: parameters, gradients, the optimiser's state, activations
  double resident_bytes = 0;  // by which the process grew at most; 0 on a GPU. Right only for a process' first case
  std::int64_t parameters = 0;
  std::vector<double> losses;  // of the first steps
  std::string skipped;         // why there is no measurement, or empty
};

struct TrainEffort {
  double seconds = 2;        // how long to repeat steps
  double most_seconds = 60;  // a step expected to take longer is skipped
};

// What the case is called in tables: its mechanism, or the hybrid.
std::string name_of(const TrainCase& c);

// With `exchange`, the weights before the first step and the batch are written to that safetensors file, for another
// program to do the same steps. Throws UserError for a model that cannot be built.
TrainMeasurement measure_training(const TrainCase& c, const TrainEffort& effort, const std::string& exchange = "");

// What the system could still give, in bytes; 0 when it does not tell.
double available_memory();

}  // namespace cosformer::cli
