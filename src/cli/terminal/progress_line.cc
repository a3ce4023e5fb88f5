#include "cli/terminal/progress_line.h"

#include <memory>

#include "base/progress.h"

namespace cosformer::cli {

data::Progress progress_line(const std::string& what, const std::string& unit) {
  const auto line = std::make_shared<std::unique_ptr<Progress>>();
  const auto before = std::make_shared<std::uint64_t>(0);
  return [=](std::uint64_t done, std::uint64_t total) {
    if (!*line) *line = std::make_unique<Progress>(what, static_cast<long long>(total), unit);
    (*line)->advance(static_cast<long long>(done - *before));
    *before = done;
  };
}

std::function<void(std::size_t)> progress_line(const std::string& what, const std::string& unit, std::size_t total) {
  const auto line = std::make_shared<Progress>(what, static_cast<long long>(total), unit);
  return [line](std::size_t count) { line->advance(static_cast<long long>(count)); };
}

}  // namespace cosformer::cli
