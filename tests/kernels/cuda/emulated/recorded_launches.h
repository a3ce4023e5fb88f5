// Launches that are written down in place of being played: what a call would start, whatever its tensors hold.
#pragma once

#include <string>
#include <vector>

namespace emulated {

struct RecordedLaunch {
  std::string kernel;  // its name; empty for those that only their own file knows
  unsigned blocks = 0;
  bool cooperative = false;
};

// While it lives, no kernel is played.
class LaunchRecorder {
 public:
  LaunchRecorder();
  ~LaunchRecorder();
  LaunchRecorder(const LaunchRecorder&) = delete;
  LaunchRecorder& operator=(const LaunchRecorder&) = delete;
  std::vector<RecordedLaunch> launches;
};

}  // namespace emulated
