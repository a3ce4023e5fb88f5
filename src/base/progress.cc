#include "base/progress.h"

#include <array>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

#include "base/table.h"

namespace cosformer {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Progress::Progress(std::string what, long long total, std::string unit, long long done)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      done_(done),
      done_before_(done),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + std::chrono::seconds(2)) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (drawn_ && terminal_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void Progress::advance(long long count) {
  done_ += count;
  if (Clock::now() >= next_) draw();
}

void Progress::draw() {
  const auto now = Clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_ - done_before_) / elapsed;
  const double seconds = expected_ >= 0 ? expected_ : static_cast<double>(total_ - done_) / rate;
  const std::string left = expected_ >= 0 || rate > 0 ? fmt::format("  {} left", human_seconds(seconds)) : "";
  const std::string line = fmt::format("{}  {}/{} {}  {} {}/s{}{}", what_, with_commas(done_), with_commas(total_),
                                       unit_, significant(rate), unit_, left, note_.empty() ? "" : "  " + note_);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
  next_ = now + (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10));
}

std::string human_seconds(double seconds) {
  const auto whole = static_cast<long long>(seconds + 0.5);
  std::array<char, 64> text{};
  if (whole < 60) {
    std::snprintf(text.data(), text.size(), "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text.data();
}

}  // namespace cosformer
