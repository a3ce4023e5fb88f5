// The weights of a model that is to answer questions.
#pragma once

#include <string>

#include <torch/nn/module.h>

namespace cosformer::models {

// Loads them and ends training mode. Throws UserError as load_weights does, and when a weight is not a finite number:
// whatever such a model is asked, it answers nothing.
void load_trained_weights(const std::string& path, torch::nn::Module& module);

}  // namespace cosformer::models
