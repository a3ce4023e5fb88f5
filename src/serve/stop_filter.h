// Text as it is written, up to the first of some stop strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cosformer::serve {

class StopFilter {
 public:
  // Empty stop strings are ignored.
  explicit StopFilter(std::vector<std::string> stops);

  // What can be shown now: nothing that may be the beginning of a stop string, or that follows one.
  std::string push(std::string_view text);
  // The rest, when nothing more comes.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_back_;
  bool stopped_ = false;
};

}  // namespace cosformer::serve
