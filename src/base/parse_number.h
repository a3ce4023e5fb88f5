// A text that is a number and nothing else, whatever the locale.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace cosformer {

// Whether it is one that Number can hold; `value` is untouched otherwise.
template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc{} && result.ptr == end;
}

}  // namespace cosformer
