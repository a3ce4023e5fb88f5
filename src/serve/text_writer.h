// Writing a text token by token: until it ends by itself, holds a stop text, is as long as asked, or has reached the
// model's horizon.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/stream_decoder.h"
#include "serve/generator.h"
#include "serve/stop_filter.h"

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

// A text as it is written, whoever chooses and reads its tokens.
class TextWriting {
 public:
  // Behind the text of `session`.
  TextWriting(const Generator& generator, const Session& session, const WritingOptions& options);

  // Whether no token is wanted any more; ended_by() then tells why.
  bool done() const { return done_; }
  TextEnd ended_by() const { return ended_by_; }
  // Of the next token: the text that is certain now.
  std::string push(std::int32_t token);
  // The rest, when nothing more comes.
  std::string finish();

 private:
  data::TokenizerPointer tokenizer_;
  data::StreamDecoder decoder_;
  StopFilter filter_;
  std::int64_t left_;
  bool ends_, is_continued_, done_;
  TextEnd ended_by_;
};

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
