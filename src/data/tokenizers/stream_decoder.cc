#include "data/tokenizers/stream_decoder.h"

#include "base/formats/utf8.h"

namespace cosformer::data {

std::string Utf8Filter::push(std::string_view bytes) {
  held_back_ += bytes;
  std::string shown;
  std::string_view rest = held_back_;
  while (!rest.empty()) {
    const Utf8Piece piece = next_utf8(rest);
    if (piece.state == Utf8State::kIncomplete) break;
    shown += piece.state == Utf8State::kCharacter ? rest.substr(0, piece.size) : kReplacementCharacter;
    rest.remove_prefix(piece.size);
  }
  held_back_.erase(0, held_back_.size() - rest.size());
  return shown;
}

std::string Utf8Filter::finish() {
  const bool incomplete = !held_back_.empty();
  held_back_.clear();
  return incomplete ? std::string(kReplacementCharacter) : "";
}

std::string StreamDecoder::push(std::int32_t id) {
  std::string bytes;
  tokenizer_->append_text(id, previous_, bytes);
  previous_ = id;
  return filter_.push(bytes);
}

}  // namespace cosformer::data
