// Ctrl-C as a question asked between two steps instead of a death in the middle of one.
#pragma once

namespace cosformer::train {

// For its lifetime SIGINT and SIGTERM are noted, not obeyed; a second one ends the process at once, as usual.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool requested();
};

}  // namespace cosformer::train
