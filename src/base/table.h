// Tables for people: columns that align, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace cosformer {

class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  std::string text() const;  // each line ends in a newline

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
};

// "1.23", "0.00123", "1.2e-07": `digits` significant digits, short.
std::string significant(double value, int digits = 3);

// "512 B", "3.4 MB", "1.25 GB"
std::string human_bytes(double bytes);

// "1,234,567"
std::string with_commas(long long value);

}  // namespace cosformer
