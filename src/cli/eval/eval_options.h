// What `cosformer eval` is asked. Options that a kind of run does not read are refused before (run_kinds.h).
#pragma once

#include <string>
#include <vector>

namespace cosformer::cli {

struct EvalOptions {
  std::vector<std::string> runs;
  std::string part = "test", data_path, device = "auto";
  bool part_given = false;   // data of one's own have no parts
  long long batch_size = 0;  // 0: as in training
  bool json = false;
  // Language models: tokens over which the state is carried (0: as far as the model can look back), and tokens of each
  // window that are only read.
  long long carry = 0, context = 0;
  long long write = 1000;  // text to text: answers that are written at most
};

}  // namespace cosformer::cli
