#include "data/tokenizers/tokenizer_learning.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "data/corpus/corpus_files.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

std::function<void(std::size_t)> begin(const LearningOptions& options, const std::string& what, std::uint64_t bytes) {
  if (options.progress) return options.progress(what, bytes);
  return [](std::size_t) {};
}

TokenizerPointer learn_words(const ReadTexts& read, std::uint64_t total, const LearningOptions& options) {
  WordCounter counter;
  const auto done = begin(options, "counting words", total);
  read([&](std::string_view text) {
    counter.add(text);
    done(text.size());
    return true;
  });
  return counter.vocabulary(static_cast<std::size_t>(options.vocabulary), options.least_count);
}

// The library asks for one text after the other, the reader gives one after the other: the texts that are learned from
// (not more than a sample) lie in memory in between.
TokenizerPointer learn_pieces(const ReadTexts& read, std::uint64_t total, const LearningOptions& options) {
  SentencePieceOptions pieces;
  pieces.model = options.pieces;
  pieces.threads = options.threads;
  pieces.vocabulary_key = options.vocabulary_key;
  if (options.vocabulary != 0) pieces.vocabulary = static_cast<std::int32_t>(options.vocabulary);
  const double share = std::min(1.0, options.sample_bytes / std::max(1.0, static_cast<double>(total)));
  std::vector<std::string> texts;
  const auto done = begin(options, "reading", total);
  double wanted = 0;
  read([&](std::string_view text) {
    done(text.size());
    wanted += share;
    if (wanted < 1) return true;
    wanted -= 1;
    texts.emplace_back(text);
    return true;
  });
  if (options.say && total > (std::uint64_t{4} << 20)) {
    options.say(fmt::format("learning {} pieces from {} of text; this can take minutes", pieces.vocabulary,
                            human_bytes(share * static_cast<double>(total))));
  }
  std::size_t next = 0;
  return train_sentencepiece(
      [&](std::string& text) {
        if (next == texts.size()) return false;
        text = std::move(texts[next++]);
        return true;
      },
      pieces);
}

}  // namespace

TokenizerPointer learn_tokenizer(const ReadTexts& read, std::uint64_t bytes, const LearningOptions& options) {
  if (options.kind == "words") return learn_words(read, bytes, options);
  if (options.kind == "sentencepiece") return learn_pieces(read, bytes, options);
  throw UserError(
      fmt::format("a tokenizer of the kind '{}' cannot be learned; expected words or sentencepiece", options.kind));
}

TokenizerPointer learn_tokenizer(const std::vector<std::string>& inputs, const CorpusOptions& corpus,
                                 const LearningOptions& options) {
  std::uint64_t total = 0;
  for (const std::string& file : corpus_files(inputs)) total += file_stamp(file).size;
  return learn_tokenizer([&](const std::function<bool(std::string_view)>& use) { read_texts(inputs, corpus, use); },
                         total, options);
}

}  // namespace cosformer::data
