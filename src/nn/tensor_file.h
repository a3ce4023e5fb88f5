// Named tensors to and from a safetensors file: weights, optimiser states.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Writes aside and renames. Throws UserError or Failure, a former file then being as it was.
void write_tensors(const std::string& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata = {});

// Fills the given tensors. Each must be in the file with its shape, and nothing else may be there; the UserError lists
// what does not fit, before anything is changed. Numbers are converted to the tensors' dtypes.
void read_tensors(const std::string& path, const NamedTensors& tensors);

// All tensors of the file, on the CPU. Throws UserError when it cannot be read or holds what torch lacks.
NamedTensors read_all_tensors(const std::string& path);

}  // namespace cosformer::nn
