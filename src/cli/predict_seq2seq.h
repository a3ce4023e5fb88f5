// `cosformer predict` of text-to-text models: an answer to each text.
#pragma once

#include <string>

namespace cosformer::cli {

struct Seq2SeqPredictOptions {
  std::string run, input, format = "auto";
  std::string output;  // text (also when empty), tsv, jsonl
  std::string device = "auto";
  long long first = 0;  // only so many inputs; 0: all
  bool skip_bad_rows = false;
};

void predict_seq2seq(const Seq2SeqPredictOptions& options);

}  // namespace cosformer::cli
