// Sequences of numbers from CSV: a row is a label and the sequence, as long as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/row_report.h"
#include "data/readers/class_labels.h"

namespace cosformer::data {

struct NumberOptions {
  std::string name = "numbers";
  // kTokens: whole numbers from 0 on, each the number of a symbol; kValues: real numbers.
  Content content = Content::kValues;
  char delimiter = ',';
  // By name or by number counted from 1; all other columns are the sequence. Empty: the rows have no label.
  std::string label_column = "1";
  std::optional<bool> header;        // by default there is one when the column is given by name
  std::vector<std::string> classes;  // given: no other labels are accepted
  UnknownLabels* unknown = nullptr;  // with classes: where rows with other labels are counted, which then have none
  std::int64_t vocabulary = 0;       // of tokens, ids kept for padding included; 0: as the greatest token needs
  RowPolicy rows;
};
// Tokens are stored in the narrowest type that holds them all.
Loaded load_numbers(const std::string& path, const NumberOptions& options = {});
// The same of what a file holds; `name` is for messages.
Loaded parse_numbers(const std::string& name, std::string_view content, const NumberOptions& options = {});

}  // namespace cosformer::data
