#include "data/mapped_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "data/file_content.h"

namespace cosformer::data {

MappedFile::MappedFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const FileDescriptor file = open_for_reading(path, O_NONBLOCK);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw file_failure("examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw UserError("cannot read '" + path + "': it is not a regular file; give the path of a data set");
  }
  if (status.st_size == 0) return;  // an empty file cannot be mapped and needs no mapping
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
  if (address == MAP_FAILED) throw file_failure("map", path, errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace cosformer::data
