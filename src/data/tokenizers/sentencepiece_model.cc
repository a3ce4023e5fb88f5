#include "data/tokenizers/sentencepiece_model.h"

#include <cmath>
#include <cstring>
#include <unordered_set>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/utf8.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kMostPieces = 10'000'000, kLongestPiece = 1 << 16;

// The fields of a protobuf message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // False at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    number_ = key >> 3;
    if (number_ == 0 || number_ > 0x1fffffff) throw UserError("it has a field of an impossible number");
    kind_ = static_cast<unsigned>(key & 7);
    switch (kind_) {
      case 0: value_ = varint(); break;
      case 1: bytes_ = take(8); break;
      case 2: bytes_ = take(varint()); break;
      case 5: bytes_ = take(4); break;
      default: throw UserError("it has a field of an impossible kind");
    }
    return true;
  }

  std::uint64_t number() const { return number_; }

  std::uint64_t value() const {
    require(0);
    return value_;
  }
  std::string_view bytes() const {
    require(2);
    return bytes_;
  }
  float real() const {
    require(5);
    float value = 0;
    std::memcpy(&value, bytes_.data(), 4);
    return value;
  }

 private:
  void require(unsigned kind) const {
    if (kind_ != kind) throw UserError(fmt::format("its field {} is of another kind than expected", number_));
  }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) throw UserError("it is cut short");
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw UserError("it has a number that does not end");
  }

  std::string_view rest_, bytes_;
  std::uint64_t number_ = 0, value_ = 0;
  unsigned kind_ = 0;
};

void add_piece(std::string_view bytes, SentencePieceModelFile& model) {
  SentencePieceModelFile::Piece piece;
  const std::string name = fmt::format("piece {}", model.pieces.size());
  for (Fields field(bytes); field.next();) {
    if (field.number() == 1) {
      piece.text = field.bytes();
    } else if (field.number() == 2) {
      if (!std::isfinite(field.real())) throw UserError(name + " has a score that is not finite");
    } else if (field.number() == 3) {
      if (field.value() < 1 || field.value() > 6) throw UserError(name + " is of an unknown type");
      piece.type = static_cast<PieceType>(field.value());
    }
  }
  if (piece.text.empty()) throw UserError(name + " is empty");
  if (piece.text.size() > kLongestPiece) throw UserError(name + " has more than 65,536 bytes");
  if (!is_utf8(piece.text) || piece.text.find('\0') != std::string::npos) throw UserError(name + " is not text");
  if (model.pieces.size() == kMostPieces) throw UserError("it has more than 10,000,000 pieces");
  model.pieces.push_back(std::move(piece));
}

// The table of characters to replace: the size of a trie, the trie as double array of 32-bit units, and the texts that
// its values point to, each ended by a zero byte. The library follows the units' offsets without looking where they
// lead.
void check_character_table(std::string_view table) {
  if (table.empty()) return;
  const auto refuse = [] { throw UserError("its table of characters is damaged"); };
  std::uint32_t size = 0;
  if (table.size() < sizeof(size)) refuse();
  std::memcpy(&size, table.data(), sizeof(size));
  if (size == 0 || size % 4 != 0 || size >= table.size() - sizeof(size)) refuse();
  std::vector<std::uint32_t> units(size / 4);
  std::memcpy(units.data(), table.data() + sizeof(size), size);
  const std::string_view texts = table.substr(sizeof(size) + size);
  if (texts.back() != '\0' || !is_utf8(texts)) refuse();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::uint32_t unit = units[i];
    if ((unit >> 31) != 0) continue;  // a leaf: its value is checked where it is reached from
    const std::size_t children = i ^ (static_cast<std::size_t>(unit >> 10) << ((unit & (1U << 9)) >> 6));
    if ((children | 0xff) >= units.size()) refuse();
    if (((unit >> 8) & 1) == 0) continue;
    const std::size_t place = units[children] & 0x7fffffff;
    // A text may be shared by its end, but never begins inside a character.
    if (place >= texts.size() || (static_cast<unsigned char>(texts[place]) & 0xc0) == 0x80) refuse();
  }
}

void read_normalizer(std::string_view bytes, SentencePieceModelFile& model) {
  for (Fields field(bytes); field.next();) {
    switch (field.number()) {
      case 2:
        check_character_table(field.bytes());
        model.normalizes = !field.bytes().empty();
        break;
      case 3: model.add_dummy_prefix = field.value() != 0; break;
      case 4: model.remove_extra_whitespaces = field.value() != 0; break;
      case 5: model.escape_whitespaces = field.value() != 0; break;
      default: break;
    }
  }
}

void read_trainer(std::string_view bytes, SentencePieceModelFile& model) {
  for (Fields field(bytes); field.next();) {
    if (field.number() == 3 && (field.value() < 1 || field.value() > 4)) throw UserError("its model type is unknown");
    if (field.number() == 35) model.byte_fallback = field.value() != 0;
    if (field.number() == 47) model.end_piece = field.bytes();
  }
}

}  // namespace

SentencePieceModelFile parse_sentencepiece_model(std::string_view bytes) {
  SentencePieceModelFile model;
  bool has_trainer = false, has_normalizer = false, has_denormalizer = false;
  const auto only_one = [](bool& seen) {
    if (seen) throw UserError("it has its settings twice");
    seen = true;
  };
  for (Fields field(bytes); field.next();) {
    if (field.number() == 1) {
      add_piece(field.bytes(), model);
    } else if (field.number() == 2) {
      only_one(has_trainer);
      read_trainer(field.bytes(), model);
    } else if (field.number() == 3) {
      only_one(has_normalizer);
      read_normalizer(field.bytes(), model);
    } else if (field.number() == 5) {
      only_one(has_denormalizer);
      SentencePieceModelFile ignored;
      read_normalizer(field.bytes(), ignored);
    }
  }
  std::unordered_set<std::string_view> texts;
  std::size_t unknown = 0, byte_pieces = 0;
  for (const auto& piece : model.pieces) {
    if (!texts.insert(piece.text).second) throw UserError("it has a piece twice");
    unknown += piece.type == PieceType::kUnknown;
    byte_pieces += piece.type == PieceType::kByte;
  }
  if (unknown != 1) throw UserError(fmt::format("it has {} pieces for unknown text; expected one", unknown));
  if (model.byte_fallback && byte_pieces != 256) throw UserError("it does not have a piece for each byte");
  return model;
}

}  // namespace cosformer::data
