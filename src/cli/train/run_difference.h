// Whether two runs have the same settings, for those who would go on with one of them.
#pragma once

#include <string>

#include "runs/run_folder.h"

namespace cosformer::cli {

// The first setting in which they differ, for a message: "train.lr = 0.001 there, 0.01 now"; empty when none does.
std::string first_difference(const runs::RunConfig& there, const runs::RunConfig& now);

}  // namespace cosformer::cli
