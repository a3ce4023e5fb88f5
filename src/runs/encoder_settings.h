// The settings of a classifier whose encoder begins as a language model that was trained before.
#pragma once

#include "runs/run_config.h"

namespace cosformer::runs {

// Whether texts are what the task classifies.
bool classifies_texts(const std::string& task);

// With train.init: makes the settings of the encoder those of that run's model, and data.max_length, where nobody has
// set it, its greatest length. Throws UserError for settings that contradict it, and for tasks that are not of text.
void take_encoder_settings(RunConfig& config, const Settings& settings);

}  // namespace cosformer::runs
