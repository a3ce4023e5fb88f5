// For tests that give a reader thousands of damaged files: a case that takes too long ends the program and says which.
#pragma once

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace cosformer::testing {

class Watchdog {
 public:
  explicit Watchdog(unsigned seconds) : seconds_(seconds) { former_ = std::signal(SIGALRM, bark); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    ::alarm(0);
    std::signal(SIGALRM, former_);
  }

  // To be called as each case begins.
  void begin(unsigned long seed, unsigned long number) {
    std::snprintf(message().data(), message().size(), "\ncase %lu of seed %lu takes too long\n", number, seed);
    ::alarm(seconds_);
  }

 private:
  static std::array<char, 128>& message() {
    static std::array<char, 128> text{};
    return text;
  }
  static void bark(int) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message().data(), std::strlen(message().data()));
    ::_exit(1);
  }

  unsigned seconds_;
  void (*former_)(int) = nullptr;
};

}  // namespace cosformer::testing
