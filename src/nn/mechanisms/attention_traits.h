// What each attention mechanism is called, starts with, and cannot do, with the reason; the table is in
// attention_traits.cc.
//
// To add a mechanism: a row of that table, its options in attention_options.cc, a class behind Mechanism, a line in
// mechanism.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/mechanisms/attention_config.h"

namespace cosformer::nn {

struct AttentionTraits {
  std::string name;
  std::function<void(AttentionConfig&, bool causal)> preset =
      {};                                  // what the name implies, on AttentionConfig's defaults
  std::vector<std::string> variants = {};  // of attention.variant; the first is the preset

  // Each completes the sentence: attention "NAME" cannot ... because REASON. Empty: it can.
  std::string no_causal = {};
  std::string no_rotary = {};
  std::string no_stochastic = {};  // stochastic positional encoding
};

const std::vector<AttentionTraits>& attention_traits();

// Throws UserError for a name that is not there.
const AttentionTraits& traits_of(const std::string& name);

// What a name stands for.
AttentionConfig preset_of(const std::string& name, bool causal);

// Which projections of its input a mechanism reads: "qkv"; "qv" where queries are also its keys, or there are no keys;
// "v" alone. It is handed the first of them in place of the ones that are missing.
std::string projections_of(const AttentionConfig& config);

// Whether a mechanism reads the block's input itself, in float32 even where products are of lower precision: gates that
// add up over tokens, and sums over blocks of them.
bool reads_input_in_float(const AttentionConfig& config);

// Whether training changes its buffers after a number of steps, by a decision on the host: such a step is not the same
// program every time.
bool changes_while_training(const AttentionConfig& config);

}  // namespace cosformer::nn
