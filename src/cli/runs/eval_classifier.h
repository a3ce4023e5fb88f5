// `cosformer eval` of classifiers.
#pragma once

#include <string>
#include <vector>

namespace cosformer::cli {

struct ClassifierEvalOptions {
  std::vector<std::string> runs;
  std::string part = "test", data_path, device = "auto";
  bool part_given = false;   // data of one's own have no parts
  long long batch_size = 0;  // 0: as in training
  bool json = false;
};

void eval_classifier(const ClassifierEvalOptions& options);

}  // namespace cosformer::cli
