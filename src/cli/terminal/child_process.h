// This program once more, in a process of its own, so that memory counts from nothing and a crash stays there.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cosformer::cli {

struct ChildRequest {
  std::vector<std::string> arguments;  // of this same program
  std::string output;                  // a file: what it writes to both streams is appended
  double most_seconds = 0;             // then it is killed; 0: no limit
  double most_bytes = 0;               // of memory that it may ask for; 0: no limit
};

struct ChildEnd {
  int exit_code = -1;  // −1: a signal ended it
  int signal = 0;
  bool timed_out = false, interrupted = false;
};

// Waits for its end, calling `watch` now and then. Within a train::InterruptScope, Ctrl-C is passed on to the child,
// which may save its work; its end is waited for. Should this process die, the child is told to stop as well. Throws
// Failure when it cannot be started.
ChildEnd run_child(const ChildRequest& request, const std::function<void()>& watch = {});

// The last line of a file that is not empty; "" where there is none.
std::string last_line_of(const std::string& path);

// Its end in words: "killed by signal 9 (Killed); was there too little memory?", or the last line that it wrote.
std::string explain(const ChildEnd& end, const std::string& output);

}  // namespace cosformer::cli
