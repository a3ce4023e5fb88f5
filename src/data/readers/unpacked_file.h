// A file from its beginning to its end, unpacked when it is gzip: what every reader of data begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_descriptor.h"

namespace cosformer::data {

// A regular file, as long as it is when it is opened; or what the program was given open, which may be a pipe: standard
// input as /dev/stdin, a shell's <(COMMAND) as /dev/fd/63. Another pipe or device is refused, for it could make the
// program wait for ever or read without end.
struct OpenedFile {
  FileDescriptor file;
  bool is_regular = false;
  std::uint64_t size = 0;  // 0 when it is not known
};
// Throws UserError when the path is missing, unreadable or not such a file, Failure when the system fails.
OpenedFile open_for_reading(const std::string& path);

class UnpackedFile {
 public:
  // Throws as open_for_reading does.
  explicit UnpackedFile(const std::string& path);
  ~UnpackedFile();

  // Up to `size` bytes; fewer at the end only. Throws UserError for gzip that is damaged or that unpacks to a hundred
  // times its size, as text does not, and for a pipe that does not end; Failure when the system fails.
  std::size_t read(char* to, std::size_t size);
  // Bytes of the file itself, packed if it is packed, that were read so far.
  std::uint64_t consumed() const;
  // The bytes of the file itself; 0 when that is not known.
  std::uint64_t size() const { return size_; }

 private:
  struct Stream;
  void require_reasonable() const;

  std::string path_;
  std::unique_ptr<Stream> stream_;
  bool is_regular_ = false;
  std::uint64_t size_ = 0, unpacked_ = 0;
};

}  // namespace cosformer::data
