// A block of text as tokens, documents and counts. Blocks do not depend on each other, so that many threads can work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/corpus/corpus_reader.h"

namespace cosformer::data {

struct TokenBlock {
  std::vector<std::int32_t> ids;
  // Segments: documents, and longer documents in pieces of a kilobyte or more. Each entry tells what the block holds up
  // to the segment's end; a document is counted in its first segment.
  std::vector<TextCounts> ends;
  LoadReport report;
  std::string problem;  // not empty: a bad row that must not be skipped; nothing after it was read
};

// `path` is for messages.
TokenBlock tokenize_block(const TextBlock& block, const std::string& path, const CorpusOptions& options,
                          const Tokenizer& tokenizer);

// Calls use(text) for the text of every row of a JSONL block; bad rows go to the reporter.
void for_each_row(const TextBlock& block, const std::string& path, const std::string& text_field, RowReporter& reporter,
                  const std::function<void(const std::string& text)>& use);

}  // namespace cosformer::data
