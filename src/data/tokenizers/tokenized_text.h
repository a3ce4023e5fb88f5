// Texts of a task in a language model's tokens: for fine-tuning, and for text to text.
#pragma once

#include <cstdint>

#include "data/dataset/subset.h"
#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

// Whether the sequences are texts: their bytes, as the text readers give them.
bool is_text(const Dataset& dataset);

// A data set of text (bytes: what the text readers give) as the tokenizer's tokens, at most `max_length` of each text
// (0: all). As everywhere, ids 0 and 1 are padding and class token: the tokenizer's id t becomes t + kFirstToken, and
// row t of a language model's embedding belongs at row t + kFirstToken. Throws UserError when the data set is not text.
DatasetPointer tokenize_dataset(const DatasetPointer& text, const Tokenizer& tokenizer, std::int64_t max_length = 0,
                                unsigned threads = 0);

}  // namespace cosformer::data
