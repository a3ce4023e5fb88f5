#include "serve/stop_filter.h"

#include <algorithm>
#include <utility>

namespace cosformer::serve {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string StopFilter::push(std::string_view text) {
  if (stopped_) return "";
  held_back_ += text;
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_back_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    held_back_.resize(first);
    return finish();
  }
  std::size_t kept = 0;  // the longest end of the text that begins a stop string
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_back_.size()); size > kept; --size) {
      if (std::string_view(held_back_).substr(held_back_.size() - size) == std::string_view(stop).substr(0, size)) {
        kept = size;
      }
    }
  }
  std::string shown = held_back_.substr(0, held_back_.size() - kept);
  held_back_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() {
  return std::exchange(held_back_, std::string());
}

}  // namespace cosformer::serve
