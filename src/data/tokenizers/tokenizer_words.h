// Words as published with WikiText: text is split at white space, a newline is <eos>, other words are <unk>.
// Perplexities of such models compare with the literature's. White space itself is not kept: decoding joins by single
// spaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

inline constexpr std::string_view kUnknownWord = "<unk>";
inline constexpr std::string_view kEndOfLineWord = "<eos>";

// One word a line, optionally followed by white space and a count, which is not used. The ids follow the lines; <unk>
// and <eos> are added at the end where they are missing, <mask> has the last id. `name` is for messages.
TokenizerPointer parse_word_vocabulary(std::string_view text, const std::string& name);
TokenizerPointer load_word_vocabulary(const std::string& path);

// Counts words, those of several texts too, and makes a vocabulary of them: the most frequent first (which adaptive
// softmax needs), equal ones in the order of their bytes.
class WordCounter {
 public:
  // Pieces of one text must be cut at white space.
  void add(std::string_view text);
  void add(const WordCounter& other);
  // Words that occur at least `least_count` times, at most `most_words` of them (0: all), besides <unk>, <eos>, <mask>.
  TokenizerPointer vocabulary(std::size_t most_words = 0, std::uint64_t least_count = 1) const;

  std::uint64_t words() const { return words_; }
  std::size_t different() const { return counts_.size(); }

 private:
  // Looks up views without making strings of them.
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>> counts_;
  std::uint64_t words_ = 0, lines_ = 0;
};

}  // namespace cosformer::data
