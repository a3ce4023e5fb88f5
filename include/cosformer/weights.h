// Weights in the safetensors format: the parameters and buffers of a module, by their names. Files that do not fit or
// cannot be read or written throw a std::runtime_error that says why.
#pragma once

#include <map>
#include <string>

#include <torch/nn/module.h>

namespace cosformer {

// Writes aside and renames: a file at `path` is whole, or as it was before. The metadata get a checksum of the numbers,
// "cosformer.crc32", which load_weights compares where a file has it.
void save_weights(const std::string& path, const torch::nn::Module& module,
                  const std::map<std::string, std::string>& metadata = {});

// Every parameter and buffer must be in the file with its shape, and nothing else may be there; the error lists what is
// missing, left over or misshapen, before anything is changed. Numbers are converted to the module's dtypes.
void load_weights(const std::string& path, torch::nn::Module& module);

}  // namespace cosformer
