// What separates words: the white space of ASCII. (Others, such as U+00A0, are parts of words.)
#pragma once

#include <algorithm>
#include <string_view>

namespace cosformer::data {

inline bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

inline bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_space);
}

}  // namespace cosformer::data
