// One line that tells how far a job is, how fast it goes and how long it will take.
//
// On a terminal the line is redrawn in place; elsewhere a plain line is written now and then. Nothing appears for jobs
// under two seconds. Written to stderr, so results can be piped.
#pragma once

#include <chrono>
#include <string>

namespace cosformer {

class Progress {
 public:
  // `done` of the total were done before, at no cost of time.
  Progress(std::string what, long long total, std::string unit, long long done = 0);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(long long count = 1);
  // Removes the line until it is drawn again, so that others can write to the terminal.
  void clear();
  // Seconds that are left, from who knows better than the rate until now tells.
  void expect(double seconds) { expected_ = seconds; }
  void note(std::string text) { note_ = std::move(text); }  // shown behind the numbers

 private:
  void draw();
  std::string what_, unit_, note_;
  long long total_, done_, done_before_;
  double expected_ = -1;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, next_;
};

// "3 s", "2 min 05 s", "1 h 20 min"
std::string human_seconds(double seconds);

}  // namespace cosformer
