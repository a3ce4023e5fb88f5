#include "cosformer/weights.h"

#include "nn/tensor_file.h"

namespace cosformer {
namespace {

nn::NamedTensors tensors_of(const torch::nn::Module& module) {
  nn::NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

}  // namespace

void save_weights(const std::string& path, const torch::nn::Module& module,
                  const std::map<std::string, std::string>& metadata) {
  nn::write_tensors(path, tensors_of(module), metadata);
}

void load_weights(const std::string& path, torch::nn::Module& module) {
  nn::read_tensors(path, tensors_of(module));
}

}  // namespace cosformer
