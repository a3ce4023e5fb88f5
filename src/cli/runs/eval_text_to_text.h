// `cosformer eval` of text-to-text models.
#pragma once

#include <string>
#include <vector>

namespace cosformer::cli {

struct TextToTextEvalOptions {
  std::vector<std::string> runs;
  std::string part = "test", data_path, device = "auto";
  bool part_given = false;   // data of one's own have no parts
  long long batch_size = 0;  // 0: as in training
  long long write = 1000;    // answers at most
  bool json = false;
};

void eval_text_to_text(const TextToTextEvalOptions& options);

}  // namespace cosformer::cli
