// What train and eval tell at their ends: accuracies beside what trivial rules reach.
#pragma once

#include <string>
#include <vector>

#include "train/evaluate.h"
#include "train/run_folder.h"

namespace cosformer::cli {

struct EvaluatedRun {
  std::string folder;
  train::RunConfig config;
  train::Evaluation evaluation;
};

// Floors of the task's test part first, then the runs, with what their training took where they have ended.
std::string accuracy_table(const std::vector<EvaluatedRun>& runs, const data::TaskData& task);

}  // namespace cosformer::cli
