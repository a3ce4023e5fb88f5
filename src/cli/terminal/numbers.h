// What options accept as numbers. CLI11 by itself takes a negative number for a count and wraps it around.
// Each message names, after the option, what was expected and what came.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/parse_number.h"
#include "base/table.h"

namespace cosformer::cli {

inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

inline CLI::Validator whole_number(std::int64_t least = 0, std::uint64_t most = kNoLimit) {
  const std::string limits =
      most == kNoLimit ? fmt::format("at least {}", least) : fmt::format("from {} to {}", least, most);
  const auto is_within = [=](const std::string& text) {
    std::int64_t number = 0;
    if (parse_number(text, number))
      return number >= least && (number < 0 || static_cast<std::uint64_t>(number) <= most);
    std::uint64_t above = 0;  // what int64 holds
    return parse_number(text, above) && above <= most;
  };
  return {[=](const std::string& text) {
            return is_within(text) ? "" : fmt::format("expected a whole number, {}; got '{}'", limits, text);
          },
          limits};
}

// All 64 bits: the same seed draws the same, and nothing is computed with it.
inline CLI::Validator seed_number() {
  return whole_number(0, std::numeric_limits<std::uint64_t>::max()).description("");
}

// Without limits: whoever takes the number knows them.
inline CLI::Validator real_number(double least = std::numeric_limits<double>::lowest(),
                                  double most = std::numeric_limits<double>::max()) {
  const bool any = least == std::numeric_limits<double>::lowest();
  const std::string limits = any ? "" : fmt::format("from {} to {}", significant(least), significant(most));
  return {[=](const std::string& text) {
            double number = 0;
            const bool right = parse_number(text, number) && number >= least && number <= most;  // NaN never is
            return right ? "" : fmt::format("expected a number{}; got '{}'", any ? "" : ", " + limits, text);
          },
          limits};
}

// Of threads, 0 being the default. Beyond a few for each core they only wait for each other, minutes for seconds.
inline CLI::Validator thread_number() {
  return whole_number(0, std::max(16U, 4 * std::thread::hardware_concurrency()));
}

}  // namespace cosformer::cli
