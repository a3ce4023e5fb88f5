#include "train/interrupt.h"

#include <csignal>

#include <unistd.h>

namespace cosformer::train {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void note(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
  constexpr char kText[] = "\nsaving after this step; once more stops at once, without\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof(kText) - 1);  // all that a handler may do
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptScope::requested() {
  return interrupted != 0;
}

}  // namespace cosformer::train
