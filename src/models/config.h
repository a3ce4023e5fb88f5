// A model as data: what it reads and how it is built. Stored beside its weights, it is all that is needed to build it
// again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "nn/mechanisms/attention_config.h"
#include "nn/positions/stochastic_position_config.h"

namespace cosformer::models {

// What comes in and what goes out; a task's data decide it, not the user.
struct InputConfig {
  std::int64_t vocabulary = 0;  // of tokens; 0: the model reads real values, one per place
  std::int64_t max_length = 0;
  bool pairs = false;
  std::int64_t image_width = 0, image_height = 0;  // of sequences that are images, row by row
  double value_scale = 1;                          // of real values as they are stored
  std::vector<std::string> classes;
  double blank = 0;             // what a pixel of value 0 is read as
  std::int64_t most_drawn = 0;  // pixels above 0 of the fullest training image; 0: not counted
};

struct ModelConfig {
  InputConfig input;
  nn::AttentionConfig attention;
  // Mechanisms of the layers, repeated over them; empty: every layer has `attention`. What is said of those of other
  // names, "softmax.convolution=4". Read through layer_pattern.h.
  std::vector<std::string> pattern, pattern_options;
  std::int64_t layers = 2, width = 128, heads = 4;
  std::int64_t head_dim = 0;  // 0: width / heads
  std::int64_t feed_forward = 256;
  std::string activation = "gelu", norm = "layer", norm_place = "before";
  std::string positions = "learned", scan = "rows";
  bool skip_blank = false;                  // of images: pixels of value 0 are not read
  nn::StochasticPositionConfig stochastic;  // with positions "stochastic"
  std::string pooling = "mean", pooled_norm = "none";
  bool causal = false;
  std::string pair_features = "both";
  bool attention_bias = false;
  double dropout = 0.1;
};

// Keys "model.*", "attention.*" and, with `with_input`, "input.*".
void add_settings(Settings& settings, ModelConfig& config, bool with_input);

// The same of a config that is written down, with "input.*": without the pattern where there is none, so that such
// models are written, and hashed, as before there were patterns.
void add_settings_to_write(Settings& settings, ModelConfig& config);

// What the attention's name implies, for options that nobody has set.
void apply_preset(ModelConfig& config, const Settings& settings);

// The model's name in tables: its attention, and what differs from that name's preset.
std::string label_of(const ModelConfig& config);

// Each throws UserError for what cannot be built.
void require_heads_fit(const ModelConfig& config);
void require_possible(const ModelConfig& config);

std::string to_toml(const ModelConfig& config);
ModelConfig model_config_from_toml(const std::string& text, const std::string& name);

}  // namespace cosformer::models
