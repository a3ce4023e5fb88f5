#include "models/block_config.h"

#include "models/layer_pattern.h"

namespace cosformer::models {

double embedding_deviation(const ModelConfig& config) {
  return config.positions == "sinusoidal" ? 1.0 : 0.02;
}

nn::BlockConfig block_config(const ModelConfig& c, const nn::AttentionConfig& attention) {
  const bool has_own_positions = has_positions(c, attention);
  nn::BlockConfig block;
  block.attention.width = c.width;
  block.attention.shape.heads = c.heads;
  block.attention.shape.dim = c.head_dim > 0 ? c.head_dim : c.width / c.heads;
  block.attention.shape.max_length = c.input.max_length + (c.pooling == "cls" ? 1 : 0);
  block.attention.shape.causal = c.causal;
  block.attention.bias = c.attention_bias;
  block.attention.rotary = has_own_positions && c.positions == "rotary";
  if (has_own_positions && c.positions == "stochastic") block.attention.stochastic = c.stochastic;
  block.feed_forward = c.feed_forward;
  block.activation = c.activation;
  block.norm = c.norm;
  block.norm_first = c.norm_place == "before";
  block.dropout = c.dropout;
  return block;
}

}  // namespace cosformer::models
