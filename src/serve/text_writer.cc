#include "serve/text_writer.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace cosformer::serve {
namespace {

using Clock = std::chrono::steady_clock;

// The text that a session has ended in may end inside a character, which the decoder must know.
data::StreamDecoder decoder_after(const Session& session, const data::TokenizerPointer& tokenizer) {
  constexpr std::size_t kLongestCharacter = 4;  // bytes, and so at most as many tokens
  data::StreamDecoder decoder(tokenizer);
  const std::size_t count = std::min(session.recent.size(), kLongestCharacter);
  for (std::size_t at = session.recent.size() - count; at < session.recent.size(); ++at) {
    decoder.push(session.recent[at]);
  }
  return decoder;
}

}  // namespace

std::string name_of(TextEnd end) {
  switch (end) {
    case TextEnd::kMaxTokens: return "max_tokens";
    case TextEnd::kHorizon: return "horizon";
    case TextEnd::kEndOfDocument: return "end";
    case TextEnd::kStop: return "stop";
  }
  return "";
}

TextWriting::TextWriting(const Generator& generator, const Session& session, const WritingOptions& options)
    : tokenizer_(generator.tokenizer()),
      decoder_(decoder_after(session, tokenizer_)),
      filter_(options.stops),
      left_(options.max_tokens),
      // A word list's <eos> is a line's end and no reason to stop.
      ends_(!options.past_end && tokenizer_->kind() != data::TokenizerKind::kWords),
      is_continued_(options.is_continued),
      ended_by_(TextEnd::kMaxTokens) {
  const std::optional<std::int64_t> room = generator.room(session);
  if (room.has_value() && *room < left_) {
    left_ = *room;
    ended_by_ = TextEnd::kHorizon;
  }
  done_ = left_ <= 0;
}

std::string TextWriting::push(std::int32_t token) {
  done_ = --left_ <= 0;
  if (ends_ && token == tokenizer_->end_of_document()) {
    ended_by_ = TextEnd::kEndOfDocument;
    done_ = true;
    return "";
  }
  std::string text = filter_.push(decoder_.push(token));
  if (filter_.stopped()) {
    ended_by_ = TextEnd::kStop;
    done_ = true;
  }
  return text;
}

std::string TextWriting::finish() {
  std::string text;
  if (!filter_.stopped() && !is_continued_) text = filter_.push(decoder_.finish());
  return text + filter_.finish();
}

WrittenText write_text(const Generator& generator, Session& session, const WritingOptions& options,
                       const std::function<void(std::string_view)>& show) {
  WrittenText written;
  const auto add = [&](const std::string& text) {
    written.text += text;
    if (show && !text.empty()) show(text);
  };
  TextWriting writing(generator, session, options);
  const Clock::time_point start = Clock::now();
  while (!writing.done()) {
    written.tokens.push_back(generator.next(session, options.sampling));
    add(writing.push(written.tokens.back()));
  }
  written.ended_by = writing.ended_by();
  written.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  add(writing.finish());
  return written;
}

}  // namespace cosformer::serve
