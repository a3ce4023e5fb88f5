// SentencePiece through its library: models trained here on the user's text, and .model files from elsewhere.
//
// Models trained here lose nothing: no normalisation, every byte has a token to fall back to, and bytes that are no
// UTF-8 take that way too. Models from elsewhere do what their own settings say.
//
// The library carries a protobuf of its own, which must not meet libtorch's: it is loaded at first use, apart, through
// libcosformer_sentencepiece.so (sentencepiece_module.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

// Whether this build has the library.
bool sentencepiece_available();

// Throws UserError when the bytes are not a sound model, or when this build has no SentencePiece.
TokenizerPointer parse_sentencepiece(std::string_view model, const std::string& name);
TokenizerPointer load_sentencepiece(const std::string& path);

struct SentencePieceOptions {
  std::int32_t vocabulary = 8000;               // ids, all special ones included
  std::string vocabulary_key = "--vocabulary";  // what the user sets it with, for messages
  std::string model = "unigram";                // or "bpe"
  unsigned threads = 0;  // 0: all cores. The number belongs to the result: sums are made per thread
  double share = 1;      // of the lines are learned from, drawn at random but always the same
};

// Gives the next text to learn from, or false at the end.
using NextText = std::function<bool(std::string& text)>;

// Throws UserError when there is no text, or when the vocabulary is too small or too large for it.
TokenizerPointer train_sentencepiece(const NextText& next, const SentencePieceOptions& options);

}  // namespace cosformer::data
