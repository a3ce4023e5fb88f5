// Tokenizers as files: how they are stored, read and written. (Which one a run has: runs/run_tokenizer.h.)
//
// All numbers little-endian:
//     offset  0    8 bytes  "COSFTOKN"
//             8    u32      version of the format: 1
//            12    u32      kind: 1 bytes, 2 SentencePiece, 3 words
//            16    u64      bytes of the content
//            24   32 bytes  SHA-256 of bytes 8 to 23 and the content: the tokenizer's hash
//            56    u64      zero
//            64             the content: nothing; a SentencePiece model; a word a line, <unk> and <eos> among them
#pragma once

#include <string>
#include <string_view>

#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

// Throws UserError, which calls the file `name`, when the bytes are not an intact tokenizer.
TokenizerPointer parse_tokenizer(std::string_view bytes, const std::string& name);

// `what` is "bytes", or the path of a saved tokenizer, of a SentencePiece model (by the ending .model), or of a word
// vocabulary (.txt or .vocab). Throws UserError when it is neither.
TokenizerPointer open_tokenizer(const std::string& what);

// Written aside and renamed.
void save_tokenizer(const std::string& path, const Tokenizer& tokenizer);

// Throws UserError when the tokenizer's hash is not `expected`; `owner` ("the run 'x'") says who expects it.
void require_tokenizer(const Tokenizer& tokenizer, const std::string& expected, const std::string& owner);

}  // namespace cosformer::data
