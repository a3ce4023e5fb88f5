// Which attention each layer of a model has: model.attention everywhere, or what a pattern of mechanisms says, repeated
// over the layers. A model with several mechanisms is a hybrid.
//
// A layer whose name in the pattern is model.attention's, or "same", has the options under attention.*. Every other
// mechanism has what its name stands for, but for what model.pattern_options says of it. All of its effective options
// are written there before a model is built, so a stored config never depends on a preset.
#pragma once

#include <string>
#include <vector>

#include "models/config.h"

namespace cosformer::models {

// Keys "model.pattern" and "model.pattern_options".
void add_pattern_settings(Settings& settings, ModelConfig& config);

// Where nobody has set model.attention, it is the first mechanism that the pattern names.
void name_attention_of_pattern(ModelConfig& config, const Settings& settings);
// Writes down all options of the mechanisms that are not model.attention.
void complete_pattern_options(ModelConfig& config);

// One for each layer.
std::vector<nn::AttentionConfig> layer_attentions(const ModelConfig& config);
// Each mechanism once, in the order of the layers that have it first.
std::vector<nn::AttentionConfig> attentions_of(const ModelConfig& config);
// `attention` in place of the one of that name.
void replace_attention(ModelConfig& config, const nn::AttentionConfig& attention);

// Whether a layer with this attention has the model's positions, which are rotary or stochastic: in a hybrid only those
// that can.
bool has_positions(const ModelConfig& config, const nn::AttentionConfig& attention);

// As the functions of these names in nn/ say it of one attention.
bool changes_while_training(const ModelConfig& config);
std::string note_on_order(const ModelConfig& config);

// Throws UserError for a pattern that cannot be, and for mechanisms, options and positions that do not go together.
void require_attention_possible(const ModelConfig& config);

}  // namespace cosformer::models
