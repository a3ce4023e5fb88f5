// safetensors::Reader: opening, bounds, streaming. The header's content is checked in safetensors_header.cc.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "base/formats/safetensors_header.h"

namespace cosformer::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in the file");

std::uint64_t read_header_length(const RegularFile& file) {
  const std::string& path = file.path();
  const std::uint64_t file_size = file.size();
  if (file_size < kLengthBytes) {
    refuse_file(path,
                fmt::format("it has {} bytes; expected at least {}, the header's length", file_size, kLengthBytes));
  }
  std::array<unsigned char, kLengthBytes> bytes{};
  file.read(0, bytes.data(), bytes.size());
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::uint64_t{bytes[i]} << (8 * i);
  if (length > kMaxHeaderBytes) {
    refuse_file(path, fmt::format("it announces a header of {} bytes; expected at most {}", length, kMaxHeaderBytes));
  }
  if (length > file_size - kLengthBytes) {
    refuse_file(path, fmt::format("it announces a header of {} bytes, but only {} follow: it was cut short", length,
                                  file_size - kLengthBytes));
  }
  return length;
}

}  // namespace

Reader::Reader(std::string path) : file_(std::move(path), "a .safetensors file") {
  const std::uint64_t header_length = read_header_length(file_);
  data_begin_ = kLengthBytes + header_length;
  data_size_ = file_.size() - data_begin_;

  std::string text(header_length, '\0');
  file_.read(kLengthBytes, text.data(), text.size());
  Header header = parse_header(text, data_size_, file_.path());
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);

  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return entries_[a].name < entries_[b].name; });
}

const Entry* Reader::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](std::size_t i, std::string_view n) { return entries_[i].name < n; });
  if (found == by_name_.end() || entries_[*found].name != name) return nullptr;
  return &entries_[*found];
}

void Reader::read(const Entry& entry, void* destination, std::size_t size) const {
  if (size != entry.size()) {
    throw UserError(fmt::format("cannot read tensor {} of '{}' into {} bytes; expected {}, {} of shape {}",
                                in_quotes(entry.name), path(), size, entry.size(), std::string(name_of(entry.dtype)),
                                text_of(entry.shape)));
  }
  read_part(entry, 0, destination, size);
}

void Reader::read_part(const Entry& entry, std::uint64_t offset, void* destination, std::size_t size) const {
  // The entry's own bounds are checked too: it may come from another file.
  if (entry.begin > entry.end || entry.end > data_size_ || offset > entry.size() || size > entry.size() - offset) {
    throw UserError(fmt::format(
        "cannot read {} bytes from byte {} on of tensor {} of '{}': the tensor there has {}; ask for a part inside it",
        size, offset, in_quotes(entry.name), path(), entry.size()));
  }
  file_.read(data_begin_ + entry.begin + offset, destination, size);
}

}  // namespace cosformer::safetensors
