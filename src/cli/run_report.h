// What train and eval tell at their ends: the accuracy beside what trivial rules reach.
#pragma once

#include <string>

#include "train/evaluate.h"
#include "train/run_folder.h"

namespace cosformer::cli {

std::string accuracy_table(const train::RunConfig& config, const train::Evaluation& test, const data::TaskData& task);

}  // namespace cosformer::cli
