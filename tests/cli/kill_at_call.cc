// To be preloaded: kills its process with SIGKILL at a call that changes a file or a folder below KILL_FOLDER, the one
// of number KILL_AT. Of a write half is written before, so that torn files are met too; any other call is not made. A
// process that ends otherwise writes how many such calls there were to KILL_COUNT.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

std::atomic<long> calls{0};

bool is_watched(const char* path) {
  const char* folder = std::getenv("KILL_FOLDER");
  if (folder == nullptr || path == nullptr) return false;
  std::string whole = path;
  if (whole.front() != '/') {
    char here[4096];
    if (::getcwd(here, sizeof here) == nullptr) return false;
    whole = std::string(here) + "/" + whole;
  }
  return whole.rfind(folder, 0) == 0;
}

bool is_watched(int file) {
  char target[4096];
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), target, sizeof target - 1);
  if (size <= 0) return false;
  target[size] = 0;
  return is_watched(target);
}

template <class Where>
bool dies_here(const Where& where) {
  if (!is_watched(where)) return false;
  const char* number = std::getenv("KILL_AT");
  return ++calls == (number == nullptr ? 0 : std::atol(number));
}

void die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

struct AtTheEnd {
  ~AtTheEnd() {
    const char* path = std::getenv("KILL_COUNT");
    const int file = path == nullptr ? -1 : ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return;
    const std::string text = std::to_string(calls.load());
    (void)!::syscall(SYS_write, file, text.data(), text.size());
    ::close(file);
  }
} at_the_end;

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  if (dies_here(file)) {
    (void)!::syscall(SYS_write, file, data, size / 2);
    die();
  }
  return ::syscall(SYS_write, file, data, size);
}

ssize_t writev(int file, const iovec* parts, int count) {
  if (dies_here(file)) {
    if (count > 0) (void)!::syscall(SYS_write, file, parts[0].iov_base, parts[0].iov_len / 2);
    die();
  }
  return ::syscall(SYS_writev, file, parts, count);
}

int fsync(int file) {
  if (dies_here(file)) die();
  return static_cast<int>(::syscall(SYS_fsync, file));
}

int rename(const char* from, const char* to) noexcept {
  if (dies_here(to)) die();
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (dies_here(path)) die();
  return static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

int unlink(const char* path) noexcept {
  if (dies_here(path)) die();
  return static_cast<int>(::syscall(SYS_unlink, path));
}

int remove(const char* path) noexcept {
  if (dies_here(path)) die();
  if (::syscall(SYS_unlink, path) == 0) return 0;
  return errno == EISDIR ? static_cast<int>(::syscall(SYS_rmdir, path)) : -1;
}

}  // extern "C"
