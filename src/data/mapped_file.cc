#include "data/mapped_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace cosformer::data {

MappedFile::MappedFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw UserError("cannot read '" + path + "': there is no such file; check the path");
    }
    if (errno == EACCES) throw UserError("cannot read '" + path + "': permission denied; make the file readable");
    throw file_failure("open", path, errno);
  }
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
