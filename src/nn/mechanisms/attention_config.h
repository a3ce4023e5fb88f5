// Which attention a model has: a mechanism's name and its options, as data.
//
// "cosformer" is the paper's method, with the settings that the paper itself ablates, and refuses what goes beyond it.
// "cosformer_plus" starts from the options that measure best; each may be set. Everything else is a rival mechanism.
// The effective options are what is stored: a stored config never depends on a preset. What a mechanism can do is in
// attention_traits, which option it reads in attention_options; both are tables.
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
  std::string normalizer = "sum";
  double eps = 1e-6;

  // Beyond the paper.
  bool decay = false;  // a learned γ per head
  double decay_shortest = 4, decay_longest = 512;
  bool token_decay = false;    // each token decides how much of what came before it is kept
  bool theta_spread = false;   // angles spread geometrically over the heads; only with head_norm
  bool theta_learned = false;  // an angle per head that is trained
  bool head_norm = false;      // RMSNorm per head in place of the division by the row sum

  // Rivals': the meaning of each is in attention_options.cc, their defaults in attention_traits.cc.
  std::string variant;            // "": the mechanism has one form only
  std::int64_t features = 0;      // random features of a head
  std::int64_t redraw = 0;        // draw them anew after so many training steps; 0: never
  std::int64_t rank = 0;          // keys and values that are left of a sequence
  std::int64_t landmarks = 0;     // segments of a sequence
  std::int64_t iterations = 0;    // of an iterative inverse or normalisation
  std::int64_t value_window = 0;  // width of a convolution over the values that is added to the output

  // Sparse patterns'.
  std::int64_t block = 64;         // tokens that are handled together
  std::int64_t neighbours = 0;     // blocks seen on either side
  std::int64_t window = 512;       // tokens around a token that it sees
  std::int64_t global = 1;         // first tokens, which see all and are seen by all
  std::int64_t random_blocks = 3;  // seen besides, drawn once
  std::int64_t stride = 0;         // l; 0: the root of the model's greatest length
  std::int64_t summary = 8;        // c, the tokens of a block that later blocks see
  std::int64_t rounds = 4;         // of hashing
  std::int64_t buckets = 0;        // of a round; 0: two for each block of the greatest length
  double temperature = 0.75;       // of a soft sorting

  // Around any mechanism.
  std::int64_t convolution = 0;  // width of a depthwise convolution over time on q, k and v; 0: none
  bool gate = false;             // the output times a sigmoid of the input
  double dropout = 0;            // of the weights, where they are formed
};

std::vector<std::string> attention_names();

// Keys "model.attention" and "attention.*".
void add_settings(Settings& settings, AttentionConfig& config);

// Fills in what the name implies for options that nobody has set. "cosformer_plus" has a decay in causal models only:
// both ways it costs a second scan, and did not help where it was measured (bench/results/lra).
void apply_preset(AttentionConfig& config, const Settings& settings, bool causal);

// Throws UserError for options that the mechanism does not read or that do not go together, and for a causal model of a
// mechanism that cannot be causal.
void require_possible(const AttentionConfig& config, bool causal);

// Throws UserError where a kind of positions (as model.positions names it) makes no sense with the mechanism.
void require_positions_possible(const AttentionConfig& config, const std::string& positions);

// For tables: the name, and in brackets the options that differ from it: "cosformer_plus (decay=false)".
std::string label_of(const AttentionConfig& config, bool causal);

}  // namespace cosformer::nn
