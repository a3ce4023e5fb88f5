// What stands between the columns of a table.
#pragma once

#include <string>
#include <string_view>

namespace cosformer::data {

// "a tab", "a comma", "';'".
std::string separator_name(char separator);

// When the lines have one column each, split at `separator`, but several at another one: a sentence that says so, to be
// put behind an error. Otherwise empty.
std::string separator_hint(std::string_view content, char separator);

}  // namespace cosformer::data
