// Shares of a whole, such as accuracies, and how far chance may have moved them.
#pragma once

#include <string>

namespace cosformer {

// √(p(1 − p) / n) of a share p that was measured on n independent examples; 0 when n is.
double standard_error(double share, double count);

// "43.21%", "9.550%": four significant digits.
std::string percent(double share);
// "43.21 ± 1.11%".
std::string percent(double share, double error);

}  // namespace cosformer
