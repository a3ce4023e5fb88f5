// Splits text into rows of fields: CSV with quotes as in RFC 4180, or plain columns without any quoting (TSV).
//
// Rows end in LF or CRLF; a byte-order mark at the beginning and empty lines are passed over. Where quoting is on, a
// field that begins with a quote runs to the closing quote, line breaks included, and a doubled quote stands for one;
// quotes inside other fields are ordinary characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cosformer::data {

enum class Quoting { kNone, kRfc4180 };

class DelimitedText {
 public:
  struct Row {
    std::vector<std::string> fields;
    std::uint64_t line = 0;  // on which it begins, from 1
    std::string problem;     // not empty: the row cannot be split, and why
  };

  // `text` must outlive this object.
  DelimitedText(std::string_view text, char delimiter, Quoting quoting);

  // False at the end of the text.
  bool next(Row& row);

 private:
  bool at_line_end() const;
  void skip_line_end();
  void skip_to_line_end();
  bool read_quoted(Row& row);
  void read_plain(Row& row);

  std::string_view text_;
  char delimiter_;
  Quoting quoting_;
  std::size_t position_ = 0;
  std::uint64_t line_ = 1;
};

}  // namespace cosformer::data
