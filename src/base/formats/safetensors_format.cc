// The facts that reader and writer share: the table of dtypes, sizes, and how names and shapes look in messages.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors_header.h"

namespace cosformer::safetensors {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<DTypeRow, 13> kDTypes{{{DType::kF64, "F64", 8},
                                            {DType::kF32, "F32", 4},
                                            {DType::kF16, "F16", 2},
                                            {DType::kBF16, "BF16", 2},
                                            {DType::kI64, "I64", 8},
                                            {DType::kI32, "I32", 4},
                                            {DType::kI16, "I16", 2},
                                            {DType::kI8, "I8", 1},
                                            {DType::kU64, "U64", 8},
                                            {DType::kU32, "U32", 4},
                                            {DType::kU16, "U16", 2},
                                            {DType::kU8, "U8", 1},
                                            {DType::kBool, "BOOL", 1}}};

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (static_cast<std::size_t>(kDTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enumeration());

const DTypeRow& row_of(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::string_view name_of(DType dtype) {
  return row_of(dtype).name;
}

std::size_t size_of(DType dtype) {
  return row_of(dtype).size;
}

std::optional<std::uint64_t> byte_count(DType dtype, const Shape& shape) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeRow& r) { return r.name == name; });
  return row == kDTypes.end() ? std::nullopt : std::optional(row->dtype);
}

std::string known_dtypes() {
  std::string text;
  for (const DTypeRow& row : kDTypes) text += (text.empty() ? "" : " ") + std::string(row.name);
  return text;
}

void refuse_file(const std::string& path, const std::string& fault) {
  throw UserError(
      fmt::format("cannot read '{}' as safetensors: {}. The file is damaged or was not written as safetensors; "
                  "download or save it again",
                  path, fault));
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::size_t shown = std::min(text.size(), kLongest);
  const auto continues = [&](std::size_t i) { return i < text.size() && (text[i] & 0xc0) == 0x80; };
  while (shown > 0 && continues(shown)) --shown;  // not inside a character
  std::string result = "'";
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      result += c;
    }
  }
  return result + (shown < text.size() ? "…'" : "'");
}

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dimension);
  return text + "]";
}

}  // namespace cosformer::safetensors
