#include "data/corpus/language_config.h"

#include <algorithm>

namespace cosformer::data {

void add_settings(Settings& s, LanguageDataConfig& c) {
  s.add("data.tokenizer", c.tokenizer,
        "lm, mlm, text_to_text: bytes; words or sentencepiece, learned from the training text; or a tokenizer's file");
  s.add("data.tokenizer_vocabulary", c.tokenizer_vocabulary,
        "lm, mlm, text_to_text: tokens of a tokenizer that is learned; 0: all words, 8000 pieces", 0, 100'000'000);
  s.add("data.documents", c.documents, "lm, mlm: where a document of a text file ends; stream: nowhere",
        {"files", "blank_lines", "lines", "stream"});
  s.add("data.text_field", c.text_field, "lm, mlm: the key of the text in JSONL rows");
  s.add("data.max_line_megabytes", c.max_line_megabytes,
        "lm, mlm: the longest line, JSONL row or document that is tokenised as one; a longer one is an error", 1,
        1 << 20);
  s.add("data.window", c.window,
        "lm, mlm: tokens of a training example; data.max_length is how far the model can look back, 0: as far", 1,
        std::int64_t{1} << 30);
  s.add("data.documents_apart", c.documents_apart, "lm, mlm: tokens do not see other documents");
  s.add("data.carry", c.carry,
        "lm: read on with the state that the window before left, up to data.max_length tokens; gradients stay in the "
        "window");
  s.add("data.mask_rate", c.mask_rate, "mlm: share of the tokens that are to be found", 0.001, 0.999);
  s.add("data.cache", c.cache, "lm, mlm: folder of tokenised text; empty: the user's cache");
}

const std::vector<std::string>& language_tasks() {
  static const std::vector<std::string> names{"lm", "mlm"};
  return names;
}

bool is_language_task(const std::string& task) {
  const std::vector<std::string>& names = language_tasks();
  return std::find(names.begin(), names.end(), task) != names.end();
}

}  // namespace cosformer::data
