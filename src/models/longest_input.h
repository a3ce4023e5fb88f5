// How long a sequence a classifier can read: often more than the longest one of its training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/config.h"

namespace cosformer::models {

// Places of the longest sequence, those that the model puts before it not counted; nothing: any number.
std::optional<std::int64_t> longest_input(const ModelConfig& config);

// What sets that limit, to go on from "longer than the 160 that it reads: ".
std::string why_not_longer(const ModelConfig& config);

// The same model for sequences of up to `length`, which longest_input() allows: the same weights fit it and mean the
// same.
ModelConfig lengthened(const ModelConfig& config, std::int64_t length);

}  // namespace cosformer::models
