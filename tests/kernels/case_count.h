// How many random cases a test draws: its own number, or that percentage of it which COSFORMER_TEST_CASES names (slow
// builds, such as the sanitizers', draw fewer; a night's run may draw more).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace cosformer {

inline std::uint64_t case_count(std::uint64_t usual) {
  const char* percent = std::getenv("COSFORMER_TEST_CASES");
  if (percent == nullptr) return usual;
  return std::max<std::uint64_t>(1, usual * std::strtoull(percent, nullptr, 10) / 100);
}

}  // namespace cosformer
