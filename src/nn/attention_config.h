// Which attention a model has: a mechanism's name and its options, as data.
//
// "cosformer" is the paper's method and refuses what goes beyond it. "cosformer_plus" starts from the options that
// measure best; each may be set. The effective options are what is stored: a stored config never depends on a preset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"

namespace cosformer::nn {

struct AttentionConfig {
  std::string name = "cosformer_plus";

  // The operator's own.
  double horizon = 0;  // M in tokens; 0: the model's greatest length
  std::string feature_map = "relu";
  bool reweight = true;
  double eps = 1e-6;

  // Beyond the paper.
  bool decay = false;  // a learned γ per head
  double decay_shortest = 4, decay_longest = 512;
  bool theta_spread = false;  // angles spread geometrically over the heads; only with head_norm
  bool head_norm = false;     // RMSNorm per head in place of the division by the row sum

  // Around any mechanism.
  std::int64_t convolution = 0;  // width of a depthwise convolution over time on q, k and v; 0: none
  bool gate = false;             // the output times a sigmoid of the input
  double dropout = 0;            // of softmax's weights
};

std::vector<std::string> attention_names();

// Keys "model.attention" and "attention.*".
void add_settings(Settings& settings, AttentionConfig& config);

// Fills in what the name implies for options that nobody has set. "cosformer_plus" has a decay in causal models only:
// both ways it costs a second scan, and did not help where it was measured (bench/results/lra).
void apply_preset(AttentionConfig& config, const Settings& settings, bool causal);

// Throws UserError for options that the mechanism does not have or that do not go together.
void require_possible(const AttentionConfig& config);

// For tables: the name, and in brackets the options that differ from it: "cosformer_plus (decay=false)".
std::string label_of(const AttentionConfig& config, bool causal);

}  // namespace cosformer::nn
