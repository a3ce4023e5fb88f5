// While it lives, the process cannot make a file larger than `bytes`: the nearest thing to a full disk that needs no
// privileges. The first write past the limit comes back short, the next fails with EFBIG.
#pragma once

#include <csignal>
#include <stdexcept>

#include <sys/resource.h>

namespace cosformer::testing {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    former_handler_ = std::signal(SIGXFSZ, SIG_IGN);  // else the signal ends the process
    if (::getrlimit(RLIMIT_FSIZE, &former_) != 0) throw std::runtime_error("getrlimit failed");
    rlimit limited = former_;
    limited.rlim_cur = bytes;
    if (::setrlimit(RLIMIT_FSIZE, &limited) != 0) throw std::runtime_error("setrlimit failed");
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, former_handler_);
  }

 private:
  rlimit former_{};
  void (*former_handler_)(int) = nullptr;
};

}  // namespace cosformer::testing
