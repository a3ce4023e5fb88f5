#include "base/files/atomic_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace cosformer {
namespace {

constexpr int kNameAttempts = 100;
// Keeps the temporary's name below the file systems' limit of 255 bytes whatever the target is called.
constexpr std::size_t kNamePart = 200;

std::string random_suffix() {
  std::random_device device;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), ".%08x%08x.tmp", static_cast<unsigned>(device()),
                static_cast<unsigned>(device()));
  return text.data();
}

constexpr std::size_t kSuffixLength = 1 + 16 + 4;  // as random_suffix() makes them

bool is_random_suffix(std::string_view text) {
  return text.size() == kSuffixLength && text.front() == '.' && text.ends_with(".tmp") &&
         text.substr(1, 16).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Renaming over a device or a pipe would remove it from the system: only a regular file may be replaced.
void require_replaceable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;  // a new file, or a missing folder that opening will report
    throw file_failure("write", path, errno);         // such as a name too long: known now, not after the writing
  }
  if (S_ISREG(status.st_mode)) return;
  throw UserError(fmt::format("cannot write '{}': it is {}; give the path of a new file or of one to replace", path,
                              S_ISDIR(status.st_mode) ? "a directory" : "not a regular file"));
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  const std::size_t slash = path_.rfind('/');
  const std::size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
  directory_ = slash == std::string::npos ? "." : path_.substr(0, name_begin);
  const std::string name = path_.substr(name_begin);
  if (path_.find('\0') != std::string::npos) {
    throw UserError("cannot write a file whose path holds a zero byte; give a path without it");
  }
  if (name.empty() || name == "." || name == "..") {
    throw UserError(fmt::format("cannot write '{}': the path does not end in a file name; add one", path_));
  }
  require_replaceable(path_);

  const std::string prefix = path_.substr(0, name_begin) + "." + name.substr(0, kNamePart);
  for (int attempt = 0; attempt < kNameAttempts && !file_.is_open(); ++attempt) {
    temporary_path_ = prefix + random_suffix();
    file_ = FileDescriptor(::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file_.is_open() && errno != EEXIST && errno != EINTR) break;
  }
  if (!file_.is_open()) {
    const int error_number = errno;
    struct stat status {};
    const bool has_directory = ::stat(directory_.c_str(), &status) == 0;  // such as /proc, which takes no files
    if (!has_directory && (error_number == ENOENT || error_number == ENOTDIR)) {
      throw UserError(
          fmt::format("cannot write '{}': the directory '{}' does not exist; create it first", path_, directory_));
    }
    throw file_failure("create a temporary file beside", path_, error_number);
  }
  temporary_exists_ = true;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::write(const void* data, std::size_t size) {
  require_open();
  if (const int error_number = write_all(file_, data, size); error_number != 0) fail("write", error_number);
}

void AtomicFile::commit() {
  require_open();
  int result = 0;
  do {
    result = ::fsync(file_.number());
  } while (result != 0 && errno == EINTR);
  if (result != 0) fail("bring to the disk", errno);
  if (file_.close() != 0 && errno != EINTR) fail("close", errno);
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) fail("put the finished file at", errno);
  temporary_exists_ = false;

  // The file is in place; this makes the rename itself survive a power loss. A directory that may be written but not
  // read cannot be opened for it, and some file systems have no such call (EINVAL): nothing better can be done there.
  FileDescriptor directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) {
    if (errno == EACCES) return;
    throw file_failure("bring to the disk the directory of", path_, errno);
  }
  if (::fsync(directory.number()) != 0 && errno != EINVAL && errno != EINTR) {
    throw file_failure("bring to the disk the directory of", path_, errno);
  }
}

void AtomicFile::fail(const std::string& action, int error_number) {
  discard();
  throw file_failure(action, path_, error_number);
}

void AtomicFile::discard() noexcept {
  file_.close();
  if (temporary_exists_) ::unlink(temporary_path_.c_str());
  temporary_exists_ = false;
}

void AtomicFile::require_open() const {
  if (!file_.is_open()) throw std::logic_error("AtomicFile used after commit() or after a failure: " + path_);
}

void remove_temporaries(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  const std::string prefix = "." + target.filename().string().substr(0, kNamePart);
  std::error_code ignored;  // what cannot be removed harms nobody
  std::vector<fs::path> found;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && is_random_suffix(std::string_view(name).substr(prefix.size()))) {
      found.push_back(entry.path());
    }
  }
  for (const fs::path& file : found) fs::remove(file, ignored);
}

void require_writable(const std::string& path) {
  const AtomicFile unused(path);
}

}  // namespace cosformer
