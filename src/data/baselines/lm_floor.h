// What counting reaches on a text: a language model's loss says something only beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"

namespace cosformer::data {

struct LmFloor {
  std::string rule;
  double nats = 0;  // −ln p of all tokens of the test part together
};

// Counted on the training part (its first `most_tokens`), measured on the test part:
//   "single tokens": (count + 1) / (total + vocabulary);
//   "pairs of tokens": Witten-Bell, (count of the pair + kinds · p of the single token) / (count + kinds), where
//   `kinds` is how many different tokens followed the one before.
// The token before the first is <eod>. Throws UserError when a part is empty.
std::vector<LmFloor> lm_floors(const CorpusPart& train, const CorpusPart& test, const Tokenizer& tokenizer,
                               std::uint64_t most_tokens = 50'000'000);

}  // namespace cosformer::data
