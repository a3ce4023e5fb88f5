// Writing RUN/result.json (result_file.h) when a training has ended.
#pragma once

#include <string>

#include "train/trainer.h"

namespace cosformer::train {

// Written aside and renamed. `label`: the attention, for tables.
void write_result(const std::string& run, const runs::RunConfig& config, const std::string& label,
                  const TrainResult& result);

}  // namespace cosformer::train
