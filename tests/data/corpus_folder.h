// A folder of texts, read as a corpus whose cache is in the same folder.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/corpus/corpus.h"
#include "data/corpus_fixture.h"

namespace cosformer::data {

class CorpusTest : public ::testing::Test {
 protected:
  CorpusOptions options(std::vector<std::string> names, DocumentRule rule = DocumentRule::kFiles) const {
    CorpusOptions result;
    for (const std::string& name : names) result.train.push_back(directory_.file(name));
    result.documents = rule;
    result.valid_fraction = 0;
    result.cache_folder = directory_.file("cache");
    result.threads = 2;
    return result;
  }
  void write(const std::string& name, const std::string& text) const {
    testing::write_bytes(directory_.file(name), text);
  }
  static std::string only_cache(const Corpus& corpus) { return corpus.cache_files.at(0); }

  const testing::TemporaryDirectory directory_;
};

// The documents of a part, without <eod>.
inline std::vector<std::string> documents_of(const Corpus& corpus, const CorpusPart& part) {
  std::vector<std::string> documents;
  const std::vector<std::int32_t> tokens = testing::all_tokens(part);
  std::vector<std::uint64_t> starts = testing::all_starts(part);
  starts.push_back(tokens.size());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    documents.push_back(corpus.tokenizer->decode(
        std::span(tokens).subspan(starts[i], static_cast<std::size_t>(starts[i + 1] - starts[i]))));
  }
  return documents;
}

}  // namespace cosformer::data
