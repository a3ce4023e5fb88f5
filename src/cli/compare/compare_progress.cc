#include "cli/compare/compare_progress.h"

#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

#include "base/progress.h"

namespace cosformer::cli {

CompareProgress::CompareProgress(std::size_t cells, double work)
    : cells_(cells), work_(work), terminal_(isatty(STDERR_FILENO) == 1), next_(start_ + std::chrono::seconds(2)) {}

CompareProgress::~CompareProgress() {
  clear();
}

void CompareProgress::clear() {
  if (drawn_ && terminal_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void CompareProgress::begin(std::size_t number, std::string label, double work) {
  number_ = number;
  label_ = std::move(label);
  current_ = work;
  current_share_ = current_before_ = 0;
}

void CompareProgress::end() {
  finished_ += current_;
  before_ += current_before_ * current_;
  current_ = current_share_ = current_before_ = 0;
}

std::string CompareProgress::time_left() const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double done = finished_ + current_share_ * current_;
  const double here = done - before_ - current_before_ * current_;
  if (here <= 0 || work_ <= 0) return "";
  return human_seconds(elapsed * (work_ - done) / here) + " left";
}

void CompareProgress::update(double share, double done_before, const std::string& note) {
  current_share_ = share;
  current_before_ = done_before;
  const auto now = Clock::now();
  if (now < next_) return;
  const std::string left = time_left();
  const std::string line = fmt::format("compare  cell {}/{}  {}{}{}", number_, cells_, label_,
                                       note.empty() ? "" : "  " + note, left.empty() ? "" : "  " + left);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
  next_ = now + (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(30));
}

}  // namespace cosformer::cli
