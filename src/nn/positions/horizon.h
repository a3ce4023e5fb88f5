// The horizon M of a model: what the options say, or its greatest length.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

// Throws UserError when tokens could lie farther apart than the horizon.
double checked_horizon(const AttentionConfig& config, const AttentionShape& shape);

}  // namespace cosformer::nn
