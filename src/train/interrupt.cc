#include "train/interrupt.h"

#include <csignal>

namespace cosformer::train {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void note(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
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
