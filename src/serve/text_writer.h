// Writing a text token by token: until it ends by itself, holds a stop text, is as long as asked, or has reached the
// model's horizon.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/generator.h"

namespace cosformer::serve {

struct WritingOptions {
  SamplingOptions sampling;
  std::int64_t max_tokens = 256;
  std::vector<std::string> stops;  // the text ends before the first of them
  bool past_end = false;           // go on behind the end of a document
  bool is_continued = false;       // the session goes on later: a character that is not whole yet is completed then
};

enum class TextEnd { kMaxTokens, kHorizon, kEndOfDocument, kStop };
std::string name_of(TextEnd end);  // "max_tokens", "horizon", "end", "stop"

struct WrittenText {
  std::vector<std::int32_t> tokens;  // the one that ended it among them
  std::string text;
  TextEnd ended_by = TextEnd::kMaxTokens;
  double seconds = 0;
};

// The session has then read all tokens. `show` is given the text as it becomes certain: whole characters, and nothing
// that may be the beginning of a stop text.
WrittenText write_text(const Generator& generator, Session& session, const WritingOptions& options,
                       const std::function<void(std::string_view)>& show = {});

}  // namespace cosformer::serve
