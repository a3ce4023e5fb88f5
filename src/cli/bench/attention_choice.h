// Which CUDA kernels a shape would have, told on any machine: the choice needs neither a GPU nor CUDA.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/attention_bench.h"

namespace cosformer::cli {

// The GPUs that choices can be told for.
std::vector<std::string> described_gpus();

// Of each pass of the case, in a few lines. Tensors as a model has them: dense, aligned, each with its own memory.
std::string explain_choice(const BenchCase& c, const std::string& gpu);

// The kernels that a training forward pass of the case would have, in a few words.
std::string chosen_kernels_in_short(const BenchCase& c, const std::string& gpu);

}  // namespace cosformer::cli
