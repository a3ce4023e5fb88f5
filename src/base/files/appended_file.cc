#include "base/files/appended_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "base/error.h"

namespace cosformer {

// O_NONBLOCK: opening a pipe that nobody reads must not wait.
AppendedFile::AppendedFile(std::string path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644)) {
  struct stat status {};
  const bool is_open = file_.is_open();
  if (!is_open && errno != ENXIO && errno != EISDIR) throw file_failure("write to", path_, errno);
  if (is_open && ::fstat(file_.number(), &status) != 0) throw file_failure("examine", path_, errno);
  if (!is_open || !S_ISREG(status.st_mode)) {
    throw UserError(fmt::format("cannot write to '{}': it is not a regular file; remove it", path_));
  }
}

void AppendedFile::append(std::string_view bytes) {
  struct stat before {};
  if (::fstat(file_.number(), &before) != 0) throw file_failure("examine", path_, errno);
  const int error_number = write_all(file_, bytes.data(), bytes.size());
  if (error_number == 0) return;
  // What went in is taken out again. Where that fails too, a torn last piece stays, which readers know.
  [[maybe_unused]] const int ignored = ::ftruncate(file_.number(), before.st_size);
  throw file_failure("write to", path_, error_number);
}

}  // namespace cosformer
