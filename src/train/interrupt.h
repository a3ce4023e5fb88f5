// Ctrl-C, a request to end and a terminal that closes as a question asked between two steps instead of a death in the
// middle of one.
#pragma once

namespace cosformer::train {

// For its lifetime SIGINT, SIGTERM and SIGHUP are noted, not obeyed. A second SIGINT or SIGTERM ends the process at
// once, as usual; a second SIGHUP does not, because a terminal that closes may say so twice (its shell, then the
// system). Who was started with SIGHUP ignored (nohup) goes on ignoring it.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool requested();

 private:
  bool heeds_hangups_;
};

}  // namespace cosformer::train
