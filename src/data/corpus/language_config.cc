#include "data/corpus/language_config.h"

#include <algorithm>

namespace cosformer::data {

void add_settings(Settings& s, LanguageDataConfig& c) {
  s.add("data.tokenizer", c.tokenizer,
        "Texts of lm, mlm and text_to_text are cut into tokens by this: bytes; words or sentencepiece, learned from "
        "the training text; or a tokenizer's file.");
  s.add("data.tokenizer_vocabulary", c.tokenizer_vocabulary,
        "A tokenizer that is learned has this many tokens; 0: all words, or 8000 pieces.", 0, 100'000'000);
  s.add("data.documents", c.documents, "A document of a text file ends here, for lm and mlm; stream: nowhere.",
        {"files", "blank_lines", "lines", "stream"});
  s.add("data.text_field", c.text_field, "The text of a JSONL row has this key, for lm and mlm.");
  s.add("data.max_line_megabytes", c.max_line_megabytes,
        "A line, JSONL row or document that is tokenised at once may have this many megabytes, for lm and mlm; a "
        "longer one is an error.",
        1, 1 << 20);
  s.add("data.window", c.window,
        "A training example of lm and mlm has this many tokens; data.max_length says how far the model can look back, "
        "0: as far.",
        1, std::int64_t{1} << 30);
  s.add("data.documents_apart", c.documents_apart,
        "Tokens of one document do not see those of others, for lm and mlm; true for short documents that have nothing "
        "to do with each other.");
  s.add("data.carry", c.carry,
        "A window of lm begins with the state that the one before left, up to data.max_length tokens; gradients stay "
        "in the window.");
  s.add("data.mask_rate", c.mask_rate, "This share of the tokens is hidden and is to be predicted, for mlm.", 0.001,
        0.999);
  s.add("data.cache", c.cache, "Tokenised text of lm and mlm is kept in this folder; empty: in the user's cache.");
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
