// Whether a model can know in which order its tokens stand.
#pragma once

#include <string>

#include "nn/mechanisms/attention_config.h"

namespace cosformer::nn {

// Whether nothing in the mechanism knows the order of tokens: without positions the model sees a bag of them (a causal
// one: of those before).
bool is_blind_to_order(const AttentionConfig& config);

// What is said before a model is trained that nothing tells the order of its tokens, and what to set; empty for others.
std::string note_on_order(const AttentionConfig& config, const std::string& positions, bool causal);

}  // namespace cosformer::nn
