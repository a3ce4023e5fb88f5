// Cutting a corpus inside of a segment.
#pragma once

#include <cstdint>

#include "data/corpus/corpus.h"
#include "data/corpus/corpus_cache.h"

namespace cosformer::data {

// The best place for a cut among those within `slack` tokens of `wanted`, 0 < wanted < cache.tokens(): behind a line's
// end, else behind white space, else where a character begins; of equally good ones the nearest.
TokenPlace place_to_cut(const TokenCache& cache, const Tokenizer& tokenizer, std::uint64_t wanted, std::uint64_t slack);

}  // namespace cosformer::data
