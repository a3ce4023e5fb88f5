// What rules that understand nothing reach on a task. A model's accuracy says something only beside them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace cosformer::data {

struct Floor {
  std::string rule;
  double accuracy = 0;  // on the test part, 0 to 1
};

struct FloorOptions {
  std::size_t most_examples = 40000;  // of the training part, drawn by a fixed seed
  int iterations = 200;               // of the solver, at most
  unsigned threads = 0;               // 0: as many as processors; the result is the same
};

// Learned on `train`, measured on `test`, by the rules:
//   the most frequent class;
//   the most frequent class given the first token (of token sequences: ListOps' root operator);
//   logistic regression on how often each token occurs (pixels and other values: in 32 bins) and on the length; of
//   pairs both documents' and their absolute differences;
//   of texts, logistic regression on their words and pairs of neighbouring words.
// Examples without a label are left out. Deterministic. Throws UserError when a part has no labelled example.
std::vector<Floor> floors(const Dataset& train, const Dataset& test, const FloorOptions& options = {});

}  // namespace cosformer::data
