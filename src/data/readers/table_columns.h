// Columns of a table named by its header or by their number, and whether the first row is a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cosformer::data {

// The number of a column given as "3" (counted from 1); nothing when the text is not such a number.
std::optional<std::size_t> column_number(const std::string& column);

// A table has a header when `said` says so; else when one of the columns asked for is a name, not a number.
bool has_header(std::optional<bool> said, const std::vector<std::string>& columns);

// The index of the column: a name of the header first, then a number. `header` is empty when there is none. Throws
// UserError that names the file and the columns there are.
std::size_t find_column(const std::string& path, const std::vector<std::string>& header, const std::string& column);

}  // namespace cosformer::data
