// How far a comparison is, in the time that it takes: cells count by their work, so that time left is about right.
//
// On a terminal a line that is redrawn; elsewhere a plain line now and then. To stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace cosformer::cli {

class CompareProgress {
 public:
  CompareProgress(std::size_t cells, double work);
  ~CompareProgress();  // clears the line
  CompareProgress(const CompareProgress&) = delete;
  CompareProgress& operator=(const CompareProgress&) = delete;

  // The cell `number` (from 1) begins, which is so much of the work.
  void begin(std::size_t number, std::string label, double work);
  // `share` of it, 0 to 1, are done; `done_before` of that were there from an earlier time.
  void update(double share, double done_before, const std::string& note);
  void end();  // of the cell
  void clear();
  std::string time_left() const;  // "3 min 20 s left", empty before anything is known

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t cells_, number_ = 0;
  double work_, finished_ = 0, before_ = 0;  // finished_: of cells that ended; before_: not done in this time
  double current_ = 0, current_share_ = 0, current_before_ = 0;
  std::string label_;
  bool terminal_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), next_;
};

}  // namespace cosformer::cli
