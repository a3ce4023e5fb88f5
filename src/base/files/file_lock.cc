#include "base/files/file_lock.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>

#include "base/error.h"

namespace cosformer {

FileLock::FileLock(const std::string& path)
    : path_(path), file_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (!file_.is_open()) throw file_failure("create", path + ".lock", errno);
  while (::flock(file_.number(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

void FileLock::remove_leftovers() const {
  const std::filesystem::path path(path_);
  const std::string beginning = "." + path.filename().string() + ".";
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(path.parent_path(), error)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with(beginning) && name.ends_with(".tmp")) std::filesystem::remove(item.path(), error);
  }
}

}  // namespace cosformer
