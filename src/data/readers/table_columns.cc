#include "data/readers/table_columns.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "data/dataset/row_report.h"

namespace cosformer::data {

std::optional<std::size_t> column_number(const std::string& column) {
  std::size_t number = 0;
  if (!parse_number(column, number) || number == 0) return std::nullopt;
  return number;
}

bool has_header(std::optional<bool> said, const std::vector<std::string>& columns) {
  if (said) return *said;
  return std::any_of(columns.begin(), columns.end(),
                     [](const std::string& column) { return !column.empty() && !column_number(column); });
}

std::size_t find_column(const std::string& path, const std::vector<std::string>& header, const std::string& column) {
  const auto named = std::find(header.begin(), header.end(), column);
  if (named != header.end()) return static_cast<std::size_t>(named - header.begin());
  const auto number = column_number(column);
  if (number && (header.empty() || *number <= header.size())) return *number - 1;
  std::string columns;
  for (std::size_t i = 0; i < std::min<std::size_t>(header.size(), 10); ++i)
    columns += (i > 0 ? ", " : "") + excerpt(header[i]);
  if (header.empty()) {
    refuse_file(
        path, fmt::format("there is no column {}; expected a number from 1 on, as the file has no header (data.header)",
                          excerpt(column)));
  }
  refuse_file(
      path,
      fmt::format(
          "there is no column {}; it has {}{}. data.text_column, data.label_column and the like say which to read",
          excerpt(column), columns, header.size() > 10 ? ", ..." : ""));
}

}  // namespace cosformer::data
