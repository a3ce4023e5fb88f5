// What separates words: the white space of ASCII. (Others, such as U+00A0, are parts of words.)
#pragma once

#include <algorithm>
#include <string_view>

namespace cosformer {

inline bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

inline bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_space);
}

// Without blanks around it: "1, 2" is a common way to write a row of a table.
inline std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace cosformer
