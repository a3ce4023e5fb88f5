#include "serve/http/json_body.h"

#include <cmath>

#include <fmt/core.h>

namespace cosformer::serve {

RequestError bad_request(const std::string& message, const std::string& param) {
  return {400, "invalid_request_error", message, param};
}

Json json_of(const RequestError& error) {
  return {{"error",
           {{"message", error.what()},
            {"type", error.type},
            {"param", error.param.empty() ? Json() : Json(error.param)},
            {"code", nullptr}}}};
}

std::string written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

JsonBody::JsonBody(const std::string& text) {
  constexpr int kDeepest = 16;
  const auto check = [](int depth, Json::parse_event_t event, Json&) {
    if (depth > kDeepest && (event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start)) {
      throw bad_request("the body is nested too deeply");
    }
    return true;
  };
  try {
    json_ = Json::parse(text, check);
  } catch (const Json::exception& error) {
    throw bad_request(fmt::format("the body must be a JSON object in UTF-8: {}", error.what()));
  }
  if (!json_.is_object()) throw bad_request("the body must be a JSON object");
}

const Json* JsonBody::find(const std::string& key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> JsonBody::optional_text(const std::string& key) const {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) throw bad_request(fmt::format("'{}' must be a text", key), key);
  return found->get<std::string>();
}

std::string JsonBody::text(const std::string& key) const {
  std::optional<std::string> found = optional_text(key);
  if (!found) throw bad_request(fmt::format("'{}' is missing; it must be a text", key), key);
  return std::move(*found);
}

bool JsonBody::flag(const std::string& key) const {
  const Json* found = find(key);
  if (found == nullptr) return false;
  if (!found->is_boolean()) throw bad_request(fmt::format("'{}' must be true or false", key), key);
  return found->get<bool>();
}

std::int64_t JsonBody::whole(const std::string& key, std::int64_t otherwise, std::int64_t least,
                             std::int64_t most) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  const bool is_small =
      found->is_number_integer() && !(found->is_number_unsigned() && found->get<std::uint64_t>() >> 63U);
  if (!is_small || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most) {
    throw bad_request(fmt::format("'{}' must be a whole number from {} to {}", key, least, most), key);
  }
  return found->get<std::int64_t>();
}

double JsonBody::number(const std::string& key, double otherwise, double least, double most) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  const double value = found->is_number() ? found->get<double>() : std::nan("");
  if (!(value >= least && value <= most)) {
    throw bad_request(fmt::format("'{}' must be a number from {} to {}", key, least, most), key);
  }
  return value;
}

std::vector<std::string> JsonBody::texts(const std::string& key, std::size_t most) const {
  const Json* found = find(key);
  if (found == nullptr) return {};
  const auto wrong = [&] { return bad_request(fmt::format("'{}' must be a text or up to {} texts", key, most), key); };
  if (found->is_string()) return {found->get<std::string>()};
  if (!found->is_array() || found->size() > most) throw wrong();
  std::vector<std::string> all;
  for (const Json& each : *found) {
    if (!each.is_string()) throw wrong();
    all.push_back(each.get<std::string>());
  }
  return all;
}

std::vector<std::int32_t> tokens_of(const Json& list, std::int32_t vocabulary, const std::string& param) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& each : list) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocabulary)) {
      throw bad_request(fmt::format("'{}' must be a text or token ids from 0 to {}", param, vocabulary - 1), param);
    }
    tokens.push_back(each.get<std::int32_t>());
  }
  return tokens;
}

}  // namespace cosformer::serve
