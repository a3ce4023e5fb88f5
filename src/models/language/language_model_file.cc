#include "models/language/language_model_file.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "base/formats/sha256.h"
#include "cosformer/weights.h"
#include "models/model_size.h"
#include "models/trained_weights.h"

namespace cosformer::models {

std::map<std::string, std::string> language_model_metadata(const LanguageModelConfig& config) {
  return {{kLanguageModelKey, to_toml(config)}};
}

void save_language_model(const std::string& path, const LanguageModel& model) {
  save_weights(path, model, language_model_metadata(model.config()));
}

bool is_language_model(const std::string& path) {
  return std::filesystem::is_regular_file(path) && safetensors::Reader(path).metadata().contains(kLanguageModelKey);
}

std::shared_ptr<LanguageModel> load_language_model(const std::string& path) {
  const safetensors::Reader file(path);
  const auto found = file.metadata().find(kLanguageModelKey);
  if (found == file.metadata().end()) {
    throw UserError(
        fmt::format("'{}' holds no language model ('{}' is missing from its metadata)", path, kLanguageModelKey));
  }
  const LanguageModelConfig config = language_model_config_from_toml(found->second, path);
  require_numbers(file, size_of(config));
  auto model = std::make_shared<LanguageModel>(config);
  load_trained_weights(path, *model);
  return model;
}

std::string hash_of(const LanguageModel& model) {
  Sha256 hash;
  hash.add(to_toml(model.config()));
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor bytes = tensor.detach().to(at::kCPU).contiguous();
    hash.add(name + ' ' + c10::toString(bytes.scalar_type()) + '\n');
    hash.add(bytes.data_ptr(), static_cast<std::size_t>(bytes.nbytes()));
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model.named_buffers()) add(item.key(), item.value());
  return hexadecimal(hash.finish());
}

}  // namespace cosformer::models
