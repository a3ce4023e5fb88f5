// The JSON of a request, read with messages that say which field is wrong and what it should be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "serve/engine/request.h"

namespace cosformer::serve {

using Json = nlohmann::ordered_json;

RequestError bad_request(const std::string& message, const std::string& param = "");

// What a client is told went wrong.
Json json_of(const RequestError& error);

// As bytes; what is no UTF-8 becomes U+FFFD.
std::string written(const Json& json);

class JsonBody {
 public:
  // Throws RequestError 400 unless it is one object of UTF-8, not nested deeper than any request needs.
  explicit JsonBody(const std::string& text);

  // A field that is null is not there.
  const Json* find(const std::string& key) const;
  std::string text(const std::string& key) const;  // it must be there
  std::optional<std::string> optional_text(const std::string& key) const;
  bool flag(const std::string& key) const;
  std::int64_t whole(const std::string& key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  double number(const std::string& key, double otherwise, double least, double most) const;
  // A text, or a list of texts.
  std::vector<std::string> texts(const std::string& key, std::size_t most) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }

 private:
  Json json_;
};

// Token ids of a list. Throws 400 for what is none of the vocabulary.
std::vector<std::int32_t> tokens_of(const Json& list, std::int32_t vocabulary, const std::string& param);

}  // namespace cosformer::serve
