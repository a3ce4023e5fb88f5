// What this build and this machine offer beyond the CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cosformer::ops {

bool has_cuda_kernels();
std::vector<std::string> gpu_names();

}  // namespace cosformer::ops
