// Texts on one line of a table.
#pragma once

#include <string>

namespace cosformer::cli {

// A newline as \n, a carriage return as \r, a tab as \t, a backslash as two.
std::string on_one_line(const std::string& text);

}  // namespace cosformer::cli
