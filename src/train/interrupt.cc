#include "train/interrupt.h"

#include <csignal>

#include <unistd.h>

namespace cosformer::train {
namespace {

volatile std::sig_atomic_t interrupted = 0;

bool ignores_hangups() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void note(int signal) {
  interrupted = 1;
  std::signal(signal, signal == SIGHUP ? SIG_IGN : SIG_DFL);
  constexpr char kText[] = "\nsaving after this step; once more stops at once, without\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof(kText) - 1);  // all that a handler may do
}

}  // namespace

InterruptScope::InterruptScope() : heeds_hangups_(!ignores_hangups()) {
  interrupted = 0;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
  if (heeds_hangups_) std::signal(SIGHUP, note);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (heeds_hangups_) std::signal(SIGHUP, SIG_DFL);
}

bool InterruptScope::requested() {
  return interrupted != 0;
}

}  // namespace cosformer::train
