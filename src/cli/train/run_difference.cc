#include "cli/train/run_difference.h"

#include <fmt/core.h>

namespace cosformer::cli {

std::string first_difference(const runs::RunConfig& there, const runs::RunConfig& now) {
  runs::RunConfig left = there, right = now;
  Settings left_settings, right_settings;
  runs::add_settings(left_settings, left);
  runs::add_settings(right_settings, right);
  const auto x = left_settings.descriptions(), y = right_settings.descriptions();
  for (std::size_t at = 0; at < x.size(); ++at) {
    if (x[at].value != y[at].value) return fmt::format("{} = {} there, {} now", x[at].key, x[at].value, y[at].value);
  }
  return "";
}

}  // namespace cosformer::cli
