// Ends the program with a message where it is given too little address space (ulimit -v, as batch systems set it).
//
// Libraries map memory when they are loaded, before main(): OpenBLAS asks again and again, for ever, when it gets none,
// and what others throw then nobody can catch. So this is looked at before they begin, when nothing of the C++ library
// may be used either.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __linux__
namespace cosformer::cli {
namespace {

constexpr rlim_t kMegabyte = rlim_t{1} << 20;
// Beyond what is mapped when the program is loaded: what the libraries take as they begin, and a little work.
constexpr rlim_t kLeast = 400 * kMegabyte;

// The address space in use; 0 when the system does not tell.
rlim_t mapped_bytes() {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 64> text{};
  const ssize_t size = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  rlim_t pages = 0;
  for (ssize_t at = 0; at < size && text[at] >= '0' && text[at] <= '9'; ++at) {
    pages = pages * 10 + static_cast<rlim_t>(text[at] - '0');
  }
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

void require_address_space(int, char**, char**) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const rlim_t mapped = mapped_bytes();
  if (mapped == 0 || limit.rlim_cur >= mapped + kLeast) return;
  std::array<char, 256> message{};
  const int size = std::snprintf(message.data(), message.size(),
                                 "cosformer: the limit of %llu MB of address space (ulimit -v) is too low: the program "
                                 "needs at least %llu MB, and more for its work; raise it\n",
                                 static_cast<unsigned long long>(limit.rlim_cur / kMegabyte),
                                 static_cast<unsigned long long>((mapped + kLeast) / kMegabyte + 1));
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), static_cast<std::size_t>(size));
  ::_exit(1);
}

__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)(int, char**,
                                                                                char**) = require_address_space;

}  // namespace
}  // namespace cosformer::cli
#endif
