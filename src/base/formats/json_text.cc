#include "base/formats/json_text.h"

#include <algorithm>

#include <fmt/core.h>

namespace cosformer {
namespace {

constexpr std::size_t kShown = 200;

const nlohmann::json* member(const nlohmann::json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& name, const std::string& key, const std::string& expected,
                         const nlohmann::json& found) {
  throw UserError(fmt::format("'{}' is not as it was written: '{}' must be {}; found {}", name, key, expected,
                              found.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, kShown)));
}

}  // namespace

std::string json_fault(const std::exception& error) {
  // "[json.exception...] parse error at line 1, column 9: ...; last read: '...'": the end repeats the file's bytes.
  std::string_view reason = error.what();
  reason.remove_prefix(std::min(reason.size(), reason.find("] ") + 2));
  reason = reason.substr(0, reason.find("; last read"));
  return std::string(reason.substr(0, kShown));
}

double json_number(const nlohmann::json& object, const std::string& key, double otherwise, const std::string& name) {
  const nlohmann::json* found = member(object, key);
  if (found == nullptr) return otherwise;
  if (found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!found->is_number()) refuse(name, key, "a number", *found);
  return found->get<double>();
}

std::int64_t json_whole(const nlohmann::json& object, const std::string& key, std::int64_t otherwise,
                        const std::string& name, std::int64_t least, std::int64_t most) {
  const nlohmann::json* found = member(object, key);
  if (found == nullptr) return otherwise;
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (!found->is_number_integer()) refuse(name, key, expected, *found);
  const bool fits = !found->is_number_unsigned() ||
                    found->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!fits || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most) {
    refuse(name, key, expected, *found);
  }
  return found->get<std::int64_t>();
}

std::string json_string(const nlohmann::json& object, const std::string& key, const std::string& otherwise,
                        const std::string& name) {
  const nlohmann::json* found = member(object, key);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) refuse(name, key, "a text", *found);
  return found->get<std::string>();
}

}  // namespace cosformer
