// The cells of a comparison, each with its whole settings and its folder, before any of them runs.
#pragma once

#include <string>
#include <vector>

#include "cli/compare/compare_config.h"
#include "cli/compare/compare_results.h"
#include "data/tokenizers/tokenizer.h"

namespace cosformer::cli {

struct PlannedCell {
  CellResult result;  // what is known: names, seed, folder; `state` is kCannot where the model cannot be
  runs::RunConfig config;
  data::TokenizerPointer tokenizer;  // of a language model: its run keeps it
  long long steps = 0;
  double work = 0;  // in tokens, to estimate the time that it takes
};

struct ComparePlan {
  std::vector<PlannedCell> cells;  // in the order of running: the first seed of all first
  std::vector<TaskFloors> floors;
  std::vector<std::string> notes;
};

// Opens the tasks' data (generated ones are made), matches parameters, measures floors. `folder` is the comparison's.
// Throws UserError, also for a cell whose folder has other settings than now.
ComparePlan plan_comparison(const CompareConfig& config, const std::string& folder);

}  // namespace cosformer::cli
