// Holding out a part of a corpus when no files are given for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/corpus/corpus.h"
#include "data/corpus/corpus_cache.h"

namespace cosformer::data {

struct SplitParts {
  CorpusPart train, valid, test;
  std::string how;  // for people; empty when nothing was held out
};

// Of three ways the first whose parts come near the shares that were asked for:
//   with 100 documents or more, documents drawn by the seed until the share is reached (from half to twice of it);
//   the end of the text, cut between segments, which are a kilobyte or more (within a quarter);
//   the end of the text, cut at the end of a line, else behind white space, else between any two characters, whichever
//   there is near the place.
// Of the end of the text, validation comes before test. Throws UserError when a part would be empty.
SplitParts split_cache(const std::shared_ptr<const TokenCache>& cache, const Tokenizer& tokenizer,
                       double valid_fraction, double test_fraction, std::uint64_t seed);

}  // namespace cosformer::data
