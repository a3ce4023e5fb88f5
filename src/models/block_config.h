// The blocks of a model, from its config.
#pragma once

#include "models/config.h"
#include "nn/block.h"

namespace cosformer::models {

nn::BlockConfig block_config(const ModelConfig& config);

// Of embeddings at the beginning. Small ones let learned positions matter from the first step; beside sines of
// amplitude one they would vanish.
double embedding_deviation(const ModelConfig& config);

}  // namespace cosformer::models
