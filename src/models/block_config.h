// The blocks of a model, from its config.
#pragma once

#include "models/config.h"
#include "nn/block.h"

namespace cosformer::models {

// Of blocks with this attention.
nn::BlockConfig block_config(const ModelConfig& config, const nn::AttentionConfig& attention);

// Of embeddings at the beginning. Small ones let learned positions matter from the first step; beside sines of
// amplitude one they would vanish.
double embedding_deviation(const ModelConfig& config);

}  // namespace cosformer::models
