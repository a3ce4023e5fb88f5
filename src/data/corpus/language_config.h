// What a language model is trained on and how its text is cut: the part of [data] that the tasks lm and mlm read, and
// of which text_to_text reads the tokenizer's settings and classifiers of texts `tokenizer`; and the names of the two
// tasks. Who reads which setting: runs/setting_readers.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"

namespace cosformer::data {

struct LanguageDataConfig {
  std::string tokenizer = "bytes";        // bytes; words or sentencepiece, learned from the training text; or a file
  std::int64_t tokenizer_vocabulary = 0;  // of a learned one; 0: all words, 8,000 pieces
  std::string documents = "files";        // where a document of a text file ends: files, blank_lines, lines, stream
  std::string text_field = "text";        // of JSONL rows
  std::int64_t max_line_megabytes = 64;   // of a line or row, which is tokenised as one
  std::int64_t window = 1024;             // tokens of a training example
  bool documents_apart = false;           // tokens do not see other documents
  bool carry = false;                     // lm: windows go on with the state that the windows before left
  double mask_rate = 0.15;                // mlm: share of the tokens that are to be found
  std::string cache;                      // folder of tokenised text; empty: the user's
};

// Keys "data.tokenizer" and so on, beside those of DataConfig.
void add_settings(Settings& settings, LanguageDataConfig& config);

// "lm" (autoregressive) and "mlm" (masked).
const std::vector<std::string>& language_tasks();
bool is_language_task(const std::string& task);

}  // namespace cosformer::data
