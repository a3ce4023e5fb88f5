// Where characters end in UTF-8, and where it is none.
#pragma once

#include <cstddef>
#include <string_view>

namespace cosformer {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

enum class Utf8State {
  kCharacter,   // a whole character
  kInvalid,     // bytes that no continuation makes a character
  kIncomplete,  // the end of the text, which could still become one
};

struct Utf8Piece {
  Utf8State state = Utf8State::kCharacter;
  std::size_t size = 1;
};

// What a text that is not empty begins with. Overlong forms, surrogates and numbers past U+10FFFF are invalid; an
// invalid piece is the longest part that a character could have begun with, at least one byte.
inline Utf8Piece next_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {};
  if (lead < 0xc2 || lead > 0xf4) return {Utf8State::kInvalid, 1};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte of some characters has narrower limits.
  const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Utf8State::kIncomplete, i};
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xbf)) return {Utf8State::kInvalid, i};
  }
  return {Utf8State::kCharacter, size};
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Piece piece = next_utf8(text);
    if (piece.state != Utf8State::kCharacter) return false;
    text.remove_prefix(piece.size);
  }
  return true;
}

}  // namespace cosformer
