// The header of a safetensors file, from its JSON text to checked entries. What reader and writer share; not for
// others, who include base/formats/safetensors.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/formats/safetensors.h"

namespace cosformer::safetensors {

constexpr std::size_t kLengthBytes = 8;
// The limit that other readers of the format have too; a real header takes about a hundred bytes a tensor.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
// More dimensions than any tensor library takes; keeps a hostile header from growing eightfold in memory.
constexpr std::size_t kMaxRank = 64;
constexpr std::string_view kMetadataName = "__metadata__";

struct Header {
  std::vector<Entry> entries;  // in the order of their data
  Metadata metadata;
};

// `text` without the length before it; `data_size` bytes follow it in the file. Throws UserError, naming `path`.
Header parse_header(std::string_view text, std::uint64_t data_size, const std::string& path);

std::optional<DType> dtype_named(std::string_view name);
std::string known_dtypes();

// Throws the UserError for a file with a fault in its content.
[[noreturn]] void refuse_file(const std::string& path, const std::string& fault);

// For messages: in quotes (the name keeps clear of std::quoted), control characters spelt out, overlong text cut.
std::string in_quotes(std::string_view text);
std::string text_of(const Shape& shape);

}  // namespace cosformer::safetensors
