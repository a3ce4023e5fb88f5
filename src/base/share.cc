#include "base/share.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/table.h"

namespace cosformer {

double standard_error(double share, double count) {
  return count > 0 ? std::sqrt(std::max(share * (1 - share), 0.0) / count) : 0;
}

std::string percent(double share) {
  return significant(100 * share, 4) + "%";
}

std::string percent(double share, double error) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), " ± %.2f%%", 100 * error);
  return significant(100 * share, 4) + text.data();
}

}  // namespace cosformer
