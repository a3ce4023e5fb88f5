// `cosformer eval` of language models.
#pragma once

#include <string>
#include <vector>

namespace cosformer::cli {

struct LanguageEvalOptions {
  std::vector<std::string> runs;
  std::string part = "test", data_path, device = "auto";
  bool part_given = false;   // data of one's own have no parts
  long long batch_size = 0;  // 0: as in training
  long long carry = 0;       // 0: as far as the model can look back
  long long context = 0;
  bool json = false;
};

void eval_language(const LanguageEvalOptions& options);

}  // namespace cosformer::cli
