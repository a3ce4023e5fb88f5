// What a model's input says about the data that it reads.
#pragma once

#include <string>

#include "data/dataset/dataset.h"
#include "models/config.h"

namespace cosformer::cli {

data::DatasetInfo dataset_info_of(const models::InputConfig& input, const std::string& task);

}  // namespace cosformer::cli
