// Matrices of attention weights side by side, in one scale of colours.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cosformer::cli {

struct AttentionPicture {
  std::string title;
  at::Tensor weights;               // [T, T]: a row is a query
  std::vector<std::string> tokens;  // what stands along both axes; empty: the tokens' numbers
};

// Draws PATH.png and PATH.svg and returns the first's path. Long sequences are averaged over squares of tokens. Throws
// Failure without gnuplot.
std::string draw_attention(const std::vector<AttentionPicture>& pictures, const std::string& path);

}  // namespace cosformer::cli
