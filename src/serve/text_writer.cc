#include "serve/text_writer.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "data/tokenizers/stream_decoder.h"
#include "serve/stop_filter.h"

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

WrittenText write_text(const Generator& generator, Session& session, const WritingOptions& options,
                       const std::function<void(std::string_view)>& show) {
  const data::TokenizerPointer& tokenizer = generator.tokenizer();
  WrittenText written;
  const auto add = [&](const std::string& text) {
    written.text += text;
    if (show && !text.empty()) show(text);
  };
  const std::optional<std::int64_t> room = generator.room(session);
  const bool is_cut = room.has_value() && *room < options.max_tokens;
  const std::int64_t most = is_cut ? *room : options.max_tokens;
  data::StreamDecoder decoder = decoder_after(session, tokenizer);
  StopFilter filter(options.stops);
  // A word list's <eos> is a line's end and no reason to stop.
  const bool ends = !options.past_end && tokenizer->kind() != data::TokenizerKind::kWords;
  const Clock::time_point start = Clock::now();
  written.ended_by = is_cut ? TextEnd::kHorizon : TextEnd::kMaxTokens;
  for (std::int64_t at = 0; at < most; ++at) {
    const std::int32_t token = generator.next(session, options.sampling);
    written.tokens.push_back(token);
    if (ends && token == tokenizer->end_of_document()) {
      written.ended_by = TextEnd::kEndOfDocument;
      break;
    }
    add(filter.push(decoder.push(token)));
    if (filter.stopped()) {
      written.ended_by = TextEnd::kStop;
      break;
    }
  }
  written.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!filter.stopped() && !options.is_continued) add(filter.push(decoder.finish()));
  add(filter.finish());
  return written;
}

}  // namespace cosformer::serve
