// What `cosformer predict` is asked.
#pragma once

#include <string>

namespace cosformer::cli {

struct PredictOptions {
  std::string run, input, format = "auto";
  std::string output;  // tsv, jsonl; of text-to-text runs also text; empty: tsv, and text of those
  std::string device = "auto";
  long long top = 1, first = 0;  // first 0: all inputs
  bool skip_bad_rows = false, labelled = false, draw = false, echo = false;
};

}  // namespace cosformer::cli
