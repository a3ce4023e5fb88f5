// Owner of one POSIX file descriptor: closes it when it goes out of scope. And writing to one to the end.
#pragma once

#include <cerrno>
#include <cstddef>
#include <utility>

#include <unistd.h>

namespace cosformer {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

  // Returns what ::close returned. Linux releases the number even when it reports an error, so there is no retry.
  int close() { return is_open() ? ::close(std::exchange(number_, -1)) : 0; }

 private:
  int number_ = -1;
};

// Writes all of it, however many calls it takes. Returns 0, or the error number of the call that failed: fewer bytes
// than asked are no error by themselves; the next call goes on or tells the reason.
inline int write_all(const FileDescriptor& file, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(file.number(), next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    next += written;
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace cosformer
