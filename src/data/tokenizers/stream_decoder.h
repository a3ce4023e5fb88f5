// Tokens to text as they come, for terminals: whole UTF-8 characters only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

// Passes UTF-8 on, holds an incomplete character back until it is complete, and puts U+FFFD for what can never become
// one (one for each maximal part, as Unicode recommends).
class Utf8Filter {
 public:
  std::string push(std::string_view bytes);
  // What is held back is incomplete for ever: U+FFFD for it, or nothing.
  std::string finish();
  std::string_view held_back() const { return held_back_; }

 private:
  std::string held_back_;
};

class StreamDecoder {
 public:
  // `previous`: the last token of the text that is continued, if there is one.
  explicit StreamDecoder(TokenizerPointer tokenizer, std::int32_t previous = Tokenizer::kNothing)
      : tokenizer_(std::move(tokenizer)), previous_(previous) {}

  // The text that can be shown now.
  std::string push(std::int32_t id);
  std::string finish() { return filter_.finish(); }

 private:
  TokenizerPointer tokenizer_;
  std::int32_t previous_;
  Utf8Filter filter_;
};

}  // namespace cosformer::data
