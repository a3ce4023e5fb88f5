// A SentencePiece .model file taken apart and checked, before the library sees it: the library trusts what it is given.
//
// The file is a protobuf message; the few fields that matter are read here. Not here: encoding (the library does it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cosformer::data {

// The values are those of the file.
enum class PieceType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct SentencePieceModelFile {
  struct Piece {
    std::string text;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;
  std::string end_piece = "</s>";
  bool byte_fallback = false;
  bool normalizes = false;  // has a table of characters to replace
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

// Throws UserError with the reason alone ("piece 7 is empty").
SentencePieceModelFile parse_sentencepiece_model(std::string_view bytes);

}  // namespace cosformer::data
