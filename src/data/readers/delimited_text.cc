#include "data/readers/delimited_text.h"

#include <algorithm>

namespace cosformer::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

DelimitedText::DelimitedText(std::string_view text, char delimiter, Quoting quoting)
    : text_(text), delimiter_(delimiter), quoting_(quoting) {
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool DelimitedText::at_line_end() const {
  if (position_ >= text_.size() || text_[position_] == '\n') return true;
  return text_[position_] == '\r' && (position_ + 1 == text_.size() || text_[position_ + 1] == '\n');
}

void DelimitedText::skip_line_end() {
  if (position_ < text_.size() && text_[position_] == '\r') ++position_;
  if (position_ < text_.size()) ++position_;
  ++line_;
}

void DelimitedText::skip_to_line_end() {
  position_ = std::min(text_.find('\n', position_), text_.size());
}

void DelimitedText::read_plain(Row& row) {
  const std::size_t begin = position_;
  while (!at_line_end() && text_[position_] != delimiter_) ++position_;
  row.fields.emplace_back(text_.substr(begin, position_ - begin));
}

bool DelimitedText::read_quoted(Row& row) {
  std::string field;
  ++position_;
  for (;;) {
    const std::size_t quote = text_.find('"', position_);
    const std::string_view piece = text_.substr(position_, quote - position_);
    line_ += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    if (quote == std::string_view::npos) {
      // Where the row was meant to end cannot be known, so the rest of the text is lost with it.
      position_ = text_.size();
      row.problem = "a quote is opened and never closed; expected a closing quote before the end of the file";
      return false;
    }
    field += piece;
    position_ = quote + 1;
    if (position_ >= text_.size() || text_[position_] != '"') break;
    field += '"';
    ++position_;
  }
  if (!at_line_end() && text_[position_] != delimiter_) {
    row.problem = "text follows a closing quote; expected a delimiter or the end of the line";
    skip_to_line_end();
    return false;
  }
  row.fields.push_back(std::move(field));
  return true;
}

bool DelimitedText::next(Row& row) {
  row.fields.clear();
  row.problem.clear();
  while (position_ < text_.size() && at_line_end()) skip_line_end();
  if (position_ >= text_.size()) return false;
  row.line = line_;
  for (;;) {
    if (quoting_ == Quoting::kRfc4180 && position_ < text_.size() && text_[position_] == '"') {
      if (!read_quoted(row)) break;
    } else {
      read_plain(row);
    }
    if (at_line_end()) break;
    ++position_;  // the delimiter
  }
  if (position_ < text_.size()) skip_line_end();
  return true;
}

}  // namespace cosformer::data
