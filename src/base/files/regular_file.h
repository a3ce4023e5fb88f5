// Regular files opened for reading, and small ones read whole: what a program reads back of its own. A pipe, a device
// or a folder in their place is refused at once; it is never waited for or read without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/files/file_descriptor.h"

namespace cosformer {

// For messages: what belongs at the path ("a settings file").
class RegularFile {
 public:
  // Throws UserError when the path is missing, unreadable or no regular file; Failure when the system fails.
  explicit RegularFile(std::string path, const std::string& what = "a file");

  const std::string& path() const { return path_; }
  // In bytes, when it was opened. Files that the system makes up while they are read, as in /proc, have none.
  std::uint64_t size() const { return size_; }

  // Fills `destination` from byte `position` on. Throws Failure when the file has become shorter, or cannot be read.
  // May be called from several threads.
  void read(std::uint64_t position, void* destination, std::size_t size) const;

 private:
  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

// The bytes that it has when it is opened. Throws as above, and UserError when there are more than `most_bytes`.
std::string read_regular_file(const std::string& path, std::uint64_t most_bytes, const std::string& what = "a file");

}  // namespace cosformer
