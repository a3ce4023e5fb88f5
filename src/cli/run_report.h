// What train and eval tell at their ends: accuracies beside what trivial rules reach.
#pragma once

#include <string>
#include <vector>

#include "data/floor.h"
#include "train/evaluate.h"
#include "train/run_folder.h"

namespace cosformer::cli {

struct EvaluatedRun {
  std::string folder;
  train::RunConfig config;
  train::Evaluation evaluation;
};

// The floors first, then the runs, with what their training took where they have ended.
std::string accuracy_table(const std::vector<EvaluatedRun>& runs, const std::vector<data::Floor>& floors);

}  // namespace cosformer::cli
