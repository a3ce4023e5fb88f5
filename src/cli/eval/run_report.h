// What train and eval tell at their ends: accuracies beside what trivial rules reach.
#pragma once

#include <string>
#include <vector>

#include "cli/train/floor_advice.h"
#include "data/baselines/floor.h"
#include "runs/run_folder.h"
#include "train/jobs/evaluate.h"

namespace cosformer::cli {

struct EvaluatedRun {
  std::string folder;
  runs::RunConfig config;
  train::Evaluation evaluation;
  std::size_t classes = 0;
};

// The floors first, then the runs, with what their training took where they have ended; accuracies with their standard
// errors, which are of `examples` examples.
std::string accuracy_table(const std::vector<EvaluatedRun>& runs, const std::vector<data::Floor>& floors,
                           std::size_t examples);

// From metrics.jsonl and result.json; what they do not say, or not as it was written, is left out.
TrainingSeen training_seen(const std::string& run);

// What to try for each run that is not better than the best floor; empty: all are.
std::string advice_for(const std::vector<EvaluatedRun>& runs, const std::vector<data::Floor>& floors);

}  // namespace cosformer::cli
