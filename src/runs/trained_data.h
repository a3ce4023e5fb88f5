// Which data a run was trained on, as far as its folder says: the name that data/dataset/fingerprint.h gives them.
#pragma once

#include <string>

#include "runs/run_folder.h"

namespace cosformer::runs {

// Empty where the run does not say: runs of older versions that have lost their checkpoints.
std::string trained_data_name(const std::string& run);

enum class SameData { kYes, kNo, kUnknown };
SameData is_trained_on(const std::string& run, const std::string& data_name);

// Throws UserError where the run's data file or folder is gone, with how to say where it is now.
void require_data_there(const std::string& run, const RunConfig& config);

// Writes the run's settings anew with data.path = `path`.
void move_data(const std::string& run, const std::string& path);

}  // namespace cosformer::runs
