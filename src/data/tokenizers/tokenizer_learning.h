// Tokenizers learned from texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/tokenizers/tokenizer_sentencepiece.h"

namespace cosformer::data {

struct LearningOptions {
  std::string kind = "sentencepiece";           // or words
  std::int64_t vocabulary = 0;                  // 0: 8,000 pieces, all words
  std::string vocabulary_key = "--vocabulary";  // what the user sets it with, for messages
  std::uint64_t least_count = 1;                // words that are rarer are <unk>
  std::string pieces = "unigram";               // or bpe
  double sample_bytes = 50e6;                   // sentencepiece learns from so much of the text, taken evenly
  unsigned threads = 0;                         // of sentencepiece; 0: all cores

  // Called with what is done ("counting words", "reading") and the bytes there are; gives what is to be called with
  // bytes read. May be empty.
  std::function<std::function<void(std::size_t)>(const std::string& what, std::uint64_t bytes)> progress;
  std::function<void(const std::string& note)> say;  // what may take long; may be empty
};

// Calls what it is given with one text after the other, until that says false.
using ReadTexts = std::function<void(const std::function<bool(std::string_view text)>& use)>;

// Learns from texts of `bytes` bytes together. Throws UserError for another kind.
TokenizerPointer learn_tokenizer(const ReadTexts& read, std::uint64_t bytes, const LearningOptions& options);

// Learns from files and folders as read_texts reads them with `corpus`. Throws UserError for another kind.
TokenizerPointer learn_tokenizer(const std::vector<std::string>& files_and_folders, const CorpusOptions& corpus,
                                 const LearningOptions& options);

}  // namespace cosformer::data
