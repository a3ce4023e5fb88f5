#include "data/readers/number_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/white_space.h"
#include "data/readers/class_labels.h"
#include "data/readers/delimited_text.h"
#include "data/readers/file_content.h"
#include "data/readers/separator.h"
#include "data/readers/table_columns.h"
#include "data/readers/text_encoding.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();
constexpr std::int32_t kGreatestToken = std::numeric_limits<std::int32_t>::max() - kFirstToken;

// Throws UserError with the reason alone.
template <typename Number>
Number parse_number(std::string_view field, std::size_t column, std::string_view expected) {
  std::string_view text = trimmed(field);
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument || end != text.data() + text.size() || text.empty()) {
    throw UserError(fmt::format("column {} is {}; expected {}", column + 1, excerpt(field), std::string(expected)));
  }
  if (error != std::errc{}) {
    throw UserError(fmt::format("column {} is {}, which is out of range; expected {}", column + 1, excerpt(field),
                                std::string(expected)));
  }
  return number;
}

class NumberCollector {
 public:
  explicit NumberCollector(const NumberOptions& options) : options_(options) {}

  // Row by row, all or nothing; throws UserError with the reason alone.
  void add(const std::vector<std::string>& fields, std::size_t label_column, ClassLabels& labels) {
    if (label_column != kAbsent && (label_column >= fields.size() || fields.size() < 2)) {
      throw UserError(fmt::format("it has {} columns; expected at least {}, the label and a number", fields.size(),
                                  std::max<std::size_t>(label_column + 1, 2)));
    }
    row_tokens_.clear();
    row_values_.clear();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i == label_column) continue;
      if (options_.content == Content::kTokens) {
        row_tokens_.push_back(checked_token(fields[i], i));
      } else {
        row_values_.push_back(checked_value(fields[i], i));
      }
    }
    const std::int32_t label =
        label_column == kAbsent ? kNoLabel : labels.number_of(std::string(trimmed(fields[label_column])));
    if (!row_tokens_.empty())
      greatest_ = std::max(greatest_, *std::max_element(row_tokens_.begin(), row_tokens_.end()));
    tokens_.insert(tokens_.end(), row_tokens_.begin(), row_tokens_.end());
    values_.insert(values_.end(), row_values_.begin(), row_values_.end());
    ends_.push_back(tokens_.size() + values_.size());
    labels_.push_back(label);
  }

  std::int32_t greatest() const { return greatest_; }

  DatasetBuilder to_builder() const {
    if (options_.content == Content::kValues) return filled<float>(ElementType::kF32, values_);
    if (greatest_ <= std::numeric_limits<std::uint8_t>::max()) return filled<std::uint8_t>(ElementType::kU8, tokens_);
    if (greatest_ <= std::numeric_limits<std::uint16_t>::max())
      return filled<std::uint16_t>(ElementType::kU16, tokens_);
    return filled<std::int32_t>(ElementType::kI32, tokens_);
  }

 private:
  std::int32_t checked_token(const std::string& field, std::size_t column) const {
    constexpr std::string_view kExpected = "a whole number from 0 on";
    const auto token = parse_number<std::int64_t>(field, column, kExpected);
    const std::int64_t bound =
        options_.vocabulary > 0 ? options_.vocabulary - kFirstToken : std::int64_t{kGreatestToken} + 1;
    if (token < 0 || token >= bound) {
      throw UserError(fmt::format("column {} is {}; expected a token from 0 to {}", column + 1, token, bound - 1));
    }
    return static_cast<std::int32_t>(token);
  }

  static float checked_value(const std::string& field, std::size_t column) {
    const auto value = parse_number<float>(field, column, "a finite number");
    if (!std::isfinite(value)) {
      throw UserError(fmt::format("column {} is {}; expected a finite number", column + 1, excerpt(field)));
    }
    return value;
  }

  template <typename Stored, typename Source>
  DatasetBuilder filled(ElementType type, const std::vector<Source>& source) const {
    DatasetBuilder builder(type);
    std::vector<Stored> row;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      row.clear();
      for (; begin < ends_[i]; ++begin) row.push_back(static_cast<Stored>(source[begin]));
      builder.add(std::span<const Stored>(row), labels_[i]);
    }
    return builder;
  }

  const NumberOptions& options_;
  std::vector<std::int32_t> row_tokens_, tokens_;
  std::vector<float> row_values_, values_;
  std::vector<std::size_t> ends_;
  std::vector<std::int32_t> labels_;
  std::int32_t greatest_ = 0;
};

}  // namespace

Loaded load_numbers(const std::string& path, const NumberOptions& options) {
  return parse_numbers(path, read_content(path), options);
}

Loaded parse_numbers(const std::string& path, std::string_view content, const NumberOptions& options) {
  if (options.vocabulary != 0 && options.vocabulary <= kFirstToken) {
    throw UserError(fmt::format("a vocabulary of {} ids holds no token; expected at least {}", options.vocabulary,
                                kFirstToken + 1));
  }
  refuse_wide_text(path, content);
  DelimitedText rows(content, options.delimiter, Quoting::kRfc4180);
  RowReporter reporter(options.rows);
  ClassLabels labels(options.classes, options.unknown);
  DelimitedText::Row row;
  std::vector<std::string> header;
  if (has_header(options.header, {options.label_column})) {
    if (!rows.next(row)) refuse_file(path, "it is empty; expected a header and rows");
    header = row.fields;
  }
  const std::size_t label_column =
      options.label_column.empty() ? kAbsent : find_column(path, header, options.label_column);
  bool is_first = true;
  const auto hint = [&] {
    const std::string separator = separator_hint(content, options.delimiter);
    if (!separator.empty() || !is_first || options.header) return separator;
    return std::string("; if this line is the table's header, set data.header=yes");
  };
  NumberCollector collector(options);
  while (rows.next(row)) {
    try {
      if (!row.problem.empty()) throw UserError(row.problem);
      collector.add(row.fields, label_column, labels);
      reporter.used_line(row.line);
    } catch (const UserError& error) {
      reporter.bad(path, "line", row.line, error.what() + hint());
    }
    is_first = false;
  }
  DatasetBuilder builder = collector.to_builder();
  DatasetInfo info;
  info.name = options.name;
  info.content = options.content;
  if (options.content == Content::kTokens) {
    info.vocabulary =
        options.vocabulary > 0 ? options.vocabulary : std::int64_t{collector.greatest()} + 1 + kFirstToken;
  }
  info.classes = labels.finish(builder);
  return reporter.finish(path, builder, std::move(info));
}

}  // namespace cosformer::data
