// What the program does with each kind of run: one table, so that commands ask it instead of the kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "cli/eval/eval_options.h"
#include "cli/runs/predict_options.h"
#include "runs/run_config.h"
#include "train/trainer.h"

namespace cosformer::cli {

// A run's trained model, as `cosformer info` describes it.
struct OpenedModel {
  std::shared_ptr<torch::nn::Module> module;
  std::string label;                 // the attention, for tables
  std::vector<std::string> classes;  // of a classifier
};

// Options of a command that a kind of run does not read, and which runs do.
struct UnreadOptions {
  std::vector<std::string> options;
  const char* read_by;
};

struct RunKind {
  runs::Kind kind;
  const char* name;  // in messages, behind "a"
  OpenedModel (*open)(const std::string& run);
  void (*train)(const train::TrainRequest& request);
  void (*evaluate)(const EvalOptions& options);
  std::vector<UnreadOptions> unread_by_eval;
  void (*predict)(const PredictOptions& options);
  std::string (*use)(const std::string& run, const runs::RunConfig& config);  // a command that puts it to work
};

const RunKind& kind_of_run(const runs::RunConfig& config);

}  // namespace cosformer::cli
