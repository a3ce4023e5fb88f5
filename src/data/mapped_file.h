// A regular file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace cosformer::data {

class MappedFile {
 public:
  // Throws UserError when the path is not a readable regular file, Failure when the system fails.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace cosformer::data
