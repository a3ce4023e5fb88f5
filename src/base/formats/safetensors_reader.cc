// safetensors::Reader: opening, bounds, streaming. The header's content is checked in safetensors_header.cc.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

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
    refuse_file(path, "it has " + std::to_string(file_size) + " bytes; expected at least " +
                          std::to_string(kLengthBytes) + ", the header's length");
  }
  std::array<unsigned char, kLengthBytes> bytes{};
  file.read(0, bytes.data(), bytes.size());
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::uint64_t{bytes[i]} << (8 * i);
  if (length > kMaxHeaderBytes) {
    refuse_file(path, "it announces a header of " + std::to_string(length) + " bytes; expected at most " +
                          std::to_string(kMaxHeaderBytes));
  }
  if (length > file_size - kLengthBytes) {
    refuse_file(path, "it announces a header of " + std::to_string(length) + " bytes, but only " +
                          std::to_string(file_size - kLengthBytes) + " follow: it was cut short");
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
    throw UserError("cannot read tensor " + in_quotes(entry.name) + " of '" + path() + "' into " +
                    std::to_string(size) + " bytes; expected " + std::to_string(entry.size()) + ", " +
                    std::string(name_of(entry.dtype)) + " of shape " + text_of(entry.shape));
  }
  read_part(entry, 0, destination, size);
}

void Reader::read_part(const Entry& entry, std::uint64_t offset, void* destination, std::size_t size) const {
  // The entry's own bounds are checked too: it may come from another file.
  if (entry.begin > entry.end || entry.end > data_size_ || offset > entry.size() || size > entry.size() - offset) {
    throw UserError("cannot read " + std::to_string(size) + " bytes from byte " + std::to_string(offset) +
                    " on of tensor " + in_quotes(entry.name) + " of '" + path() + "': the tensor there has " +
                    std::to_string(entry.size()) + "; ask for a part inside it");
  }
  file_.read(data_begin_ + entry.begin + offset, destination, size);
}

}  // namespace cosformer::safetensors
