// Reading and writing safetensors files, the format in which people exchange model weights.
//
// A file is, in this order:
//     8 bytes    N, the length of the header: unsigned, little-endian
//     N bytes    the header: one JSON object in UTF-8 that begins with '{' and may end in spaces
//     the rest   the data: the elements of the tensors, little-endian, row-major, end to end
// The header holds, for each tensor,
//     "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
// with offsets counted from the first byte of the data, and optionally "__metadata__": {"any": "text"}. The tensors
// cover the data exactly: no overlap, no hole, nothing after the last. A scalar has the shape []; a tensor with a zero
// in its shape has no bytes.
//
// What is here: files that can be trusted no further than they were checked. The Reader checks all of the above before
// it offers an entry, and takes nothing beyond it (another field in an entry, a second tensor of one name); what it
// refuses it names in a UserError. Tensors move in blocks between the file and the caller's memory; only the header is
// ever held whole. What is not here: tensors, conversions between number formats, memory mapping, files in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/regular_file.h"

namespace cosformer::safetensors {

enum class DType : std::uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };

// As the file spells it: "F64", "BF16", "BOOL".
std::string_view name_of(DType dtype);
std::size_t size_of(DType dtype);

using Shape = std::vector<std::int64_t>;
using Metadata = std::map<std::string, std::string>;

// The bytes that a tensor takes; nothing when a dimension is negative or the product of those that are not zero leaves
// int64 (so that strides computed from an accepted shape cannot overflow either).
std::optional<std::uint64_t> byte_count(DType dtype, const Shape& shape);

struct Entry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // within the data

  std::uint64_t size() const { return end - begin; }
};

// An open, checked file. Reading is const and may happen from several threads.
class Reader {
 public:
  // Throws UserError when the file is missing, unreadable or malformed, Failure when the system fails to read it.
  explicit Reader(std::string path);

  const std::string& path() const { return file_.path(); }
  // In the order of their data: reading them in turn reads the file from front to back.
  const std::vector<Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  // nullptr when there is no such tensor.
  const Entry* find(std::string_view name) const;

  // Fills `destination` with the whole tensor; `size` must be entry.size().
  void read(const Entry& entry, void* destination, std::size_t size) const;
  // `size` bytes of the tensor from its byte `offset` on, for those who convert or copy block by block.
  void read_part(const Entry& entry, std::uint64_t offset, void* destination, std::size_t size) const;

 private:
  RegularFile file_;
  std::uint64_t data_begin_ = 0, data_size_ = 0;  // in the file
  std::vector<Entry> entries_;
  std::vector<std::size_t> by_name_;  // indices into entries_
  Metadata metadata_;
};

// Puts `size` bytes of a tensor from its byte `offset` on at `destination`. Called with rising offsets, once per byte.
using Source = std::function<void(std::uint64_t offset, void* destination, std::size_t size)>;

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  const void* data = nullptr;  // either the contiguous elements
  Source source;               // or who provides them; a tensor without elements needs neither
};

// Writes the file atomically: on any exception, the source's included, a former file at `path` stays as it was.
// Wider dtypes go first, then names in order, which leaves every tensor aligned to its element. Throws UserError for
// empty, repeated or reserved names, text that is not UTF-8 and impossible shapes; Failure when the system fails.
void write(const std::string& path, const std::vector<TensorToWrite>& tensors, const Metadata& metadata = {});

}  // namespace cosformer::safetensors
