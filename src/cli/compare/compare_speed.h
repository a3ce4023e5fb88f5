// Speed and memory by length: `cosformer bench train` in a process of its own for every model and length.
#pragma once

#include "cli/compare/compare_config.h"
#include "cli/compare/compare_results.h"

namespace cosformer::cli {

// By model, lengths rising; a model that cannot do a length (memory, time) is not asked for longer ones. What was
// measured before is kept in `folder`/speed. Throws UserError when that was with other settings, Interrupted on Ctrl-C.
std::vector<SpeedPoint> measure_speed(const CompareConfig& config, const std::string& folder);

}  // namespace cosformer::cli
