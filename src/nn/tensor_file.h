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

// What tells whether the tensors in a file are as they were written, to be put into its metadata under this key: the
// CRC-32 of their names and bytes in the order of the names. Files without it, of other programs, are as good.
constexpr const char* kChecksumKey = "cosformer.crc32";
std::string checksum_of(const NamedTensors& tensors);

// Fills the given tensors. Each must be in the file with its shape, and nothing else may be there; the UserError lists
// what does not fit, before anything is changed; so does one about a checksum that the file has and that differs.
// Numbers are converted to the tensors' dtypes.
void read_tensors(const std::string& path, const NamedTensors& tensors);

// All tensors of the file, on the CPU. Throws UserError when it cannot be read or holds what torch lacks.
NamedTensors read_all_tensors(const std::string& path);

}  // namespace cosformer::nn
