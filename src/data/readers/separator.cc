#include "data/readers/separator.h"

#include <array>
#include <utility>

#include <fmt/core.h>

#include "data/readers/delimited_text.h"

namespace cosformer::data {
namespace {

constexpr std::array<std::pair<char, const char*>, 4> kSeparators = {
    {{'\t', "tab"}, {',', "comma"}, {';', "semicolon"}, {'|', "bar"}}};
constexpr std::size_t kLines = 20;

// Columns that the first lines have in common when split there; 1 when they do not.
std::size_t columns_at(std::string_view content, char separator) {
  DelimitedText rows(content, separator, Quoting::kRfc4180);
  DelimitedText::Row row;
  std::size_t columns = 0, lines = 0, alike = 0;
  while (lines < kLines && rows.next(row)) {
    if (lines++ == 0) columns = row.fields.size();
    alike += row.fields.size() == columns ? 1 : 0;
  }
  // Some texts hold it as well.
  return 4 * alike >= 3 * lines ? columns : 1;
}

}  // namespace

std::string separator_name(char separator) {
  for (const auto& [known, name] : kSeparators) {
    if (separator == known) return std::string("a ") + name;
  }
  return std::string("'") + separator + "'";
}

std::string separator_hint(std::string_view content, char separator) {
  DelimitedText rows(content, separator, Quoting::kRfc4180);
  DelimitedText::Row first;
  if (!rows.next(first) || first.fields.size() > 1) return "";
  for (const auto& [other, name] : kSeparators) {
    const std::size_t columns = other == separator ? 1 : columns_at(content, other);
    if (columns < 2) continue;
    return fmt::format("; split at {} its lines have one column, at {} they have {}: set data.separator={}",
                       separator_name(separator), separator_name(other), columns, name);
  }
  return "";
}

}  // namespace cosformer::data
