#include "cli/attention_map/token_labels.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "base/formats/utf8.h"
#include "cli/terminal/gnuplot.h"

namespace cosformer::cli {
namespace {

constexpr std::size_t kMostLabels = 96;
constexpr std::size_t kPieces = 24;           // of the text, where tokens are more
constexpr std::size_t kPieceCharacters = 12;  // what can be read beside an axis

std::string sign_of(std::string_view character) {
  if (character == " ") return "␣";
  if (character == "\n") return "⏎";
  if (character == "\t") return "⇥";
  const auto byte = static_cast<unsigned char>(character.front());
  if (character.size() == 1 && (byte < 0x20 || byte == 0x7f)) return "·";
  return std::string(character);
}

std::string hexadecimal(unsigned char byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "<%02x>", byte);
  return text.data();
}

// Calls `use(what to show, its bytes)` for each character, and for each byte that belongs to none.
template <typename Use>
void for_each_character(std::string_view text, Use&& use) {
  while (!text.empty()) {
    const Utf8Piece piece = next_utf8(text);
    const bool whole = piece.state == Utf8State::kCharacter;
    const std::size_t size = whole ? piece.size : 1;
    use(whole ? sign_of(text.substr(0, size)) : hexadecimal(static_cast<unsigned char>(text.front())), size);
    text.remove_prefix(size);
  }
}

// The text that begins with a label, as far as there is room.
std::string piece_from(const std::vector<std::string>& labels, std::size_t begin, std::size_t end) {
  std::string piece;
  std::size_t characters = 0;
  for (std::size_t at = begin; at < end && characters < kPieceCharacters; ++at) {
    piece += labels[at];
    characters += labels[at].empty() ? 0 : 1;
  }
  return piece;
}

}  // namespace

std::string visible(const std::string& text) {
  std::string shown;
  for_each_character(text, [&](const std::string& sign, std::size_t) { shown += sign; });
  return shown;
}

std::vector<std::string> byte_labels(std::span<const std::uint8_t> bytes) {
  std::vector<std::string> labels;
  for_each_character({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                     [&](const std::string& sign, std::size_t size) {
                       labels.push_back(sign);
                       labels.resize(labels.size() + size - 1);
                     });
  return labels;
}

bool all_have_room(const std::vector<std::string>& labels) {
  return labels.size() <= kMostLabels;
}

std::string token_tics(const std::vector<std::string>& labels) {
  const std::size_t step = all_have_room(labels) ? 1 : (labels.size() + kPieces - 1) / kPieces;
  std::string tics;
  for (std::size_t at = 0; at < labels.size(); at += step) {
    const std::string text = step == 1 ? labels[at] : piece_from(labels, at, std::min(at + step, labels.size()));
    if (text.empty()) continue;
    tics += (tics.empty() ? "" : ", ") + gnuplot_quoted(text) + " " + std::to_string(at + 1);
  }
  return "(" + tics + ")";
}

}  // namespace cosformer::cli
