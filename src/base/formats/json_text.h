// JSON from files that may be damaged or made by somebody else: what is wrong with it is said in our words, and it
// cannot be nested so deep that the functions that walk over it run out of stack.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cosformer {

constexpr int kDeepestJson = 64;

// The library's reason without its own codes and without the file's bytes.
std::string json_fault(const std::exception& error);

// Throws UserError that calls the text `name`.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, const std::string& name) {
  try {
    return Json::parse(text.begin(), text.end(), [&](int depth, typename Json::parse_event_t, Json&) {
      if (depth <= kDeepestJson) return true;
      throw UserError(
          fmt::format("'{}' is not as it was written: its JSON is nested deeper than {} levels", name, kDeepestJson));
    });
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("'{}' is not as it was written: it is not valid JSON ({})", name, json_fault(error)));
  }
}

// Members of an object, each looked at before it is used. `name` is the file's. What is there but of another kind, or
// out of the limits, throws UserError; what is not there is `otherwise`.
// Null is read as NaN: JSON has no other word for numbers that are not finite.
double json_number(const nlohmann::json& object, const std::string& key, double otherwise, const std::string& name);
std::int64_t json_whole(const nlohmann::json& object, const std::string& key, std::int64_t otherwise,
                        const std::string& name, std::int64_t least = 0,
                        std::int64_t most = std::numeric_limits<std::int64_t>::max());
std::string json_string(const nlohmann::json& object, const std::string& key, const std::string& otherwise,
                        const std::string& name);

}  // namespace cosformer
