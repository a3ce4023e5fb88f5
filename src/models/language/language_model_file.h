// A language model as one safetensors file: its weights, and its config in their metadata.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "models/language/language_model.h"

namespace cosformer::models {

// The key of the config among a file's metadata; classifiers' files have another one.
inline constexpr const char* kLanguageModelKey = "cosformer.language_model";

// Metadata that save_weights() is to write beside the weights.
std::map<std::string, std::string> language_model_metadata(const LanguageModelConfig& config);

void save_language_model(const std::string& path, const LanguageModel& model);

// Whether the file is there and holds a language model.
bool is_language_model(const std::string& path);

// In evaluation mode, on the CPU. Throws UserError when the file is not one.
std::shared_ptr<LanguageModel> load_language_model(const std::string& path);

// 64 hexadecimal digits of config and weights: equal when, and only when, both are.
std::string hash_of(const LanguageModel& model);

}  // namespace cosformer::models
