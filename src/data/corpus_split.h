// Holding out a part of a corpus when no files are given for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/corpus.h"
#include "data/corpus_cache.h"

namespace cosformer::data {

struct SplitParts {
  CorpusPart train, valid, test;
  std::string how;  // for people; empty when nothing was held out
};

// With 100 documents or more: documents drawn by the seed until the share is reached. With fewer: the end of the text,
// cut between segments; validation comes before test. Throws UserError when a part would be empty.
SplitParts split_cache(const std::shared_ptr<const TokenCache>& cache, double valid_fraction, double test_fraction,
                       std::uint64_t seed);

}  // namespace cosformer::data
