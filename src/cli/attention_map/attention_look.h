// What a head of a model looks at in one input: its weights taken out of a forward pass, and written down.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace cosformer::cli {

struct SeenModel {
  std::string name;
  at::Tensor weights;               // [H, T, T] of the layer: row query, column token
  std::vector<std::string> tokens;  // what stands along the axes; empty: the tokens' numbers
  double deviation = 0;             // how far weights times values are from the layer's real output
};

// Runs `forward`, a forward pass of the model over one input, with a recorder in the place of the layer's mechanism
// (from 1 on). Throws UserError for a layer that is not there, Failure where the output is no sum of values.
SeenModel look(torch::nn::Module& model, const std::string& name, long long layer,
               const std::function<void()>& forward);

struct LookOptions {
  std::string out;
  long long layer = 1, head = 1;
  bool json = false;
};

// Writes weights-1.tsv … of the head, its picture and summary.json into the folder, and prints the table of all heads.
// Throws UserError for a head that is not there.
void write_looks(const LookOptions& options, const std::vector<SeenModel>& models);

// More tokens than this make too many weights to write down.
void require_few_tokens(std::int64_t tokens);

}  // namespace cosformer::cli
