#include "cli/gnuplot_pipe.h"

#include <csignal>
#include <cstdio>

namespace cosformer::cli {
namespace {

// Writing to a program that has gone (a shell that found no gnuplot) raises SIGPIPE, whose default is death.
class PipeSignalIgnored {
 public:
  PipeSignalIgnored() : former_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~PipeSignalIgnored() {
    if (former_ != SIG_ERR) std::signal(SIGPIPE, former_);
  }
  PipeSignalIgnored(const PipeSignalIgnored&) = delete;
  PipeSignalIgnored& operator=(const PipeSignalIgnored&) = delete;

 private:
  void (*former_)(int);
};

}  // namespace

bool feed_gnuplot(const std::string& script) {
  const PipeSignalIgnored ignored;
  std::FILE* gnuplot = ::popen("gnuplot 2> /dev/null", "w");
  if (gnuplot == nullptr) return false;
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  return ::pclose(gnuplot) == 0 && written;
}

}  // namespace cosformer::cli
