#include "cosformer/weights.h"

#include "nn/tensor_file.h"
#include "ops/plain_errors.h"

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
  ops::with_plain_errors([&] {
    const nn::NamedTensors tensors = tensors_of(module);
    std::map<std::string, std::string> checked = metadata;
    checked[nn::kChecksumKey] = nn::checksum_of(tensors);
    nn::write_tensors(path, tensors, checked);
  });
}

void load_weights(const std::string& path, torch::nn::Module& module) {
  ops::with_plain_errors([&] { nn::read_tensors(path, tensors_of(module)); });
}

}  // namespace cosformer
