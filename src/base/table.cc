#include "base/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace cosformer {
namespace {

// Columns on the screen: bytes less those that continue a UTF-8 character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0U) != 0x80U; }));
}

bool is_number(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '-' || text == "nan");
}

}  // namespace

Table::Table(std::vector<std::string> header) : rows_{std::move(header)} {}

void Table::add(std::vector<std::string> row) {
  row.resize(rows_[0].size());
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  const std::size_t columns = rows_[0].size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      widths[c] = std::max(widths[c], width_of(rows_[r][c]));
      if (r > 0 && !rows_[r][c].empty() && !is_number(rows_[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (right[c] ? padding + row[c] : row[c] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string significant(double value, int digits) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  std::array<char, 64> text{};
  if (value == 0) return "0";
  if (size >= 1e-3 && size < 1e7) {
    const int whole = static_cast<int>(std::floor(std::log10(size))) + 1;
    std::snprintf(text.data(), text.size(), "%.*f", std::max(0, digits - whole), value);
  } else {
    std::snprintf(text.data(), text.size(), "%.*e", digits - 1, value);
  }
  return text.data();
}

std::string human_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return significant(bytes) + " " + kUnits[unit];
}

std::string with_commas(long long value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

}  // namespace cosformer
