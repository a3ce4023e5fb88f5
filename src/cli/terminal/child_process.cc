#include "cli/terminal/child_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/table.h"
#include "train/interrupt.h"

namespace cosformer::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Between fork and exec only calls that are safe beside other threads.
[[noreturn]] void become(char* const* arguments, int output, pid_t parent, double most_bytes) {
  setpgid(0, 0);  // Ctrl-C reaches the parent alone, which passes it on once: a second one would not wait
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  if (most_bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(most_bytes), static_cast<rlim_t>(most_bytes)};
    setrlimit(RLIMIT_DATA, &limit);
  }
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

pid_t start(const ChildRequest& request) {
  std::vector<std::string> words{"cosformer"};
  words.insert(words.end(), request.arguments.begin(), request.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int output = open(request.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) throw file_failure("open", request.output, errno);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become(arguments.data(), output, parent, request.most_bytes);
  const int error_number = errno;
  close(output);
  if (child < 0) throw Failure("cannot start a process: " + system_error_text(error_number));
  return child;
}

}  // namespace

std::string last_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

ChildEnd run_child(const ChildRequest& request, const std::function<void()>& watch) {
  const pid_t child = start(request);
  const auto begin = Clock::now();
  auto next_watch = begin;
  ChildEnd end;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) throw Failure("cannot wait for a process: " + system_error_text(errno));
    const auto now = Clock::now();
    if (train::InterruptScope::requested() && !end.interrupted) {
      end.interrupted = true;
      kill(child, SIGINT);
    }
    if (request.most_seconds > 0 && std::chrono::duration<double>(now - begin).count() > request.most_seconds) {
      end.timed_out = true;
      kill(child, SIGKILL);
    }
    if (watch && now >= next_watch) {
      watch();
      next_watch = now + std::chrono::milliseconds(200);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

std::string explain(const ChildEnd& end, const std::string& output) {
  if (end.timed_out) return "took too long";
  if (end.signal != 0) {
    return fmt::format("killed by signal {} ({}){}", end.signal, strsignal(end.signal),
                       end.signal == SIGKILL ? "; was there too little memory?" : "");
  }
  std::string line = last_line_of(output);
  const std::string own_name = "cosformer: ";
  if (line.rfind(own_name, 0) == 0) line.erase(0, own_name.size());
  return line.empty() ? fmt::format("exit code {} without a word", end.exit_code) : line;
}

}  // namespace cosformer::cli
