#include "base/files/regular_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace cosformer {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{8} << 20;

FileDescriptor open_to_read(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw UserError("cannot read a file whose path holds a zero byte; give a path without it");
  }
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; it changes nothing for a regular file.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    switch (errno) {
      case ENOENT:
      case ENOTDIR: throw UserError(fmt::format("cannot read '{}': there is no such file; check the path", path));
      case EACCES:
      case EPERM: throw UserError(fmt::format("cannot read '{}': permission denied; make the file readable", path));
      case ENXIO:  // a socket, or a device without its driver
        throw UserError(fmt::format("cannot read '{}': it is not a regular file; give the path of one", path));
      default: throw file_failure("open", path, errno);
    }
  }
  return file;
}

}  // namespace

RegularFile::RegularFile(std::string path, const std::string& what)
    : path_(std::move(path)), file_(open_to_read(path_)) {
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) throw file_failure("examine", path_, errno);
  if (!S_ISREG(status.st_mode)) {
    throw UserError(fmt::format("cannot read '{}': it is {}; give the path of {}", path_,
                                S_ISDIR(status.st_mode) ? "a directory" : "not a regular file", what));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void RegularFile::read(std::uint64_t position, void* destination, std::size_t size) const {
  char* next = static_cast<char*>(destination);
  while (size > 0) {
    const ssize_t got = ::pread(file_.number(), next, std::min(size, kBlockBytes), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_failure("read", path_, errno);
    if (got == 0) {
      throw Failure(fmt::format(
          "cannot read '{}': it became shorter while it was being read; try again when nothing writes to it", path_));
    }
    next += got;
    position += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
}

std::string read_regular_file(const std::string& path, std::uint64_t most_bytes, const std::string& what) {
  const RegularFile file(path, what);
  if (file.size() > most_bytes) {
    throw UserError(fmt::format("cannot read '{}': it has {} bytes, and {} has at most {}; check the path", path,
                                file.size(), what, most_bytes));
  }
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, content.data(), content.size());
  return content;
}

}  // namespace cosformer
