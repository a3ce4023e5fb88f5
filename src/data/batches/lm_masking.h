// Masks for masked language models, drawn anew each time a text is seen (RoBERTa's dynamic masking).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

struct MaskOptions {
  double rate = 0.15;      // of the tokens are to be predicted
  double as_mask = 0.8;    // of those are replaced by <mask>,
  double as_random = 0.1;  // by a random token that is not special; the rest stays as it is
};

struct MaskedTokens {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;  // the token where it is to be predicted, else kNoTarget
  std::int64_t predictions = 0;
};

// Which tokens are drawn depends on seed and step alone; special ones never are. For language model batches the tokens
// are LmBatch::targets; kNoTarget among them is input <eod> and not predicted. Throws UserError for rates that are no
// rates.
MaskedTokens mask_tokens(std::span<const std::int32_t> tokens, const Tokenizer& tokenizer, const MaskOptions& options,
                         std::uint64_t seed, std::uint64_t step);

}  // namespace cosformer::data
