// load_text.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/readers/class_labels.h"
#include "data/readers/delimited_text.h"
#include "data/readers/file_content.h"
#include "data/readers/separator.h"
#include "data/readers/table_columns.h"
#include "data/readers/text_encoding.h"
#include "data/readers/text_readers.h"

namespace cosformer::data {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();

TextFormat format_of(const std::string& path, const TextOptions& options) {
  if (options.format != TextFormat::kByName) return options.format;
  std::string name = path;
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".tsv")) return TextFormat::kTsv;
  if (name.ends_with(".csv")) return TextFormat::kCsv;
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return TextFormat::kJsonl;
  if (options.separator) return TextFormat::kCsv;
  refuse_file(path,
              "its name does not tell its format; expected .tsv, .csv or .jsonl, or say which it is (data.format), or "
              "what separates its columns (data.separator)");
}

// Puts rows into the data set, whatever format they come from.
class TextCollector {
 public:
  TextCollector(std::string path, const TextOptions& options)
      : path_(std::move(path)),
        options_(options),
        builder_(ElementType::kU8, !options.second_text_column.empty()),
        labels_(options.classes, options.unknown),
        reporter_(options.rows) {}

  // `extract(column)` gives a column's text or throws UserError with the reason.
  template <typename Extract>
  void add(std::uint64_t line, Extract&& extract) {
    try {
      const std::string first = text_from(extract(options_.text_column));
      const bool pair = !options_.second_text_column.empty();
      const std::string second = pair ? text_from(extract(options_.second_text_column)) : "";
      const std::string label = options_.label_column.empty() ? "" : extract(options_.label_column);
      const bool none = options_.label_column.empty() || (label.empty() && options_.label_optional);
      const std::int32_t number = none ? kNoLabel : labels_.number_of(label);
      builder_.add_pair(cut(first), cut(second), number);
      reporter_.used_line(line);
    } catch (const UserError& error) {
      bad(line, error.what());
    }
  }

  void bad(std::uint64_t line, const std::string& reason) { reporter_.bad(path_, "line", line, reason); }

  Loaded finish() {
    DatasetInfo info;
    info.name = options_.name;
    info.vocabulary = kByteVocabulary;
    info.classes = labels_.finish(builder_);
    return reporter_.finish(path_, builder_, std::move(info));
  }

 private:
  static std::string text_from(std::string text) {
    if (text.empty()) throw UserError("the text is empty; expected at least one character");
    return text;
  }

  std::string_view cut(std::string_view text) {
    if (options_.max_length == 0 || text.size() <= options_.max_length) return text;
    reporter_.text_cut();
    return text.substr(0, options_.max_length);
  }

  std::string path_;
  const TextOptions& options_;
  DatasetBuilder builder_;
  ClassLabels labels_;
  RowReporter reporter_;
};

void collect_table(const std::string& path, std::string_view content, TextFormat format, const TextOptions& options,
                   TextCollector& collector) {
  const bool csv = format == TextFormat::kCsv;
  const char separator = options.separator.value_or(csv ? ',' : '\t');
  const bool quotes = csv || separator != '\t';
  DelimitedText rows(content, separator, quotes ? Quoting::kRfc4180 : Quoting::kNone);
  const auto hint = [&] { return separator_hint(content, separator); };
  std::vector<std::string> columns = {options.text_column};
  for (const std::string& column : {options.second_text_column, options.label_column}) {
    if (!column.empty()) columns.push_back(column);
  }
  DelimitedText::Row row;
  std::vector<std::string> header;
  if (has_header(options.header, columns)) {
    if (!rows.next(row)) refuse_file(path, "it is empty; expected a header and rows");
    if (!row.problem.empty()) refuse_file(path, "its header cannot be split: " + row.problem);
    header = row.fields;
  }
  std::vector<std::pair<std::string, std::size_t>> places;
  for (const std::string& column : columns) {
    const bool optional = options.label_optional && column == options.label_column;
    const bool named = std::find(header.begin(), header.end(), column) != header.end();
    const bool absent = optional && !named && (!header.empty() || !column_number(column));
    try {
      places.emplace_back(column, absent ? kAbsent : find_column(path, header, column));
    } catch (const UserError& error) {
      throw UserError(error.what() + hint());
    }
  }

  while (rows.next(row)) {
    if (!row.problem.empty()) {
      collector.bad(row.line, row.problem);
      continue;
    }
    collector.add(row.line, [&](const std::string& column) {
      if (!header.empty() && row.fields.size() != header.size()) {
        throw UserError(
            fmt::format("it has {} columns; expected {} as in the header", row.fields.size(), header.size()));
      }
      std::size_t place = 0;
      for (const auto& [name, index] : places) place = name == column ? index : place;
      const bool optional = options.label_optional && column == options.label_column;
      if (optional && place >= row.fields.size()) return std::string();  // kAbsent among them
      if (place >= row.fields.size()) {
        throw UserError(fmt::format("it has {} columns; expected at least {}{}", row.fields.size(), place + 1, hint()));
      }
      return row.fields[place];
    });
  }
}

std::string text_of_value(const Json& object, const std::string& key, bool optional) {
  const auto found = object.find(key);
  if (found == object.end() && optional) return "";
  if (found == object.end()) throw UserError("the object has no key " + excerpt(key));
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number() || found->is_boolean()) return found->dump();
  throw UserError(
      fmt::format("the value of {} is of type {}; expected a text or a number", excerpt(key), found->type_name()));
}

void collect_json_lines(std::string_view content, const TextOptions& options, TextCollector& collector) {
  DelimitedText lines(content, '\n', Quoting::kNone);  // a line has one field: itself
  for (DelimitedText::Row row; lines.next(row);) {
    const std::string& line = row.fields.front();
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) {
      collector.bad(row.line, object.is_discarded()
                                  ? "it is not valid JSON; expected one object on the line"
                                  : fmt::format("it is of type {}; expected a JSON object", object.type_name()));
      continue;
    }
    collector.add(row.line, [&](const std::string& key) {
      return text_of_value(object, key, options.label_optional && key == options.label_column);
    });
  }
}

}  // namespace

Loaded load_text(const std::string& path, const TextOptions& options) {
  format_of(path, options);  // before anything is read
  return parse_text(path, read_content(path), options);
}

Loaded parse_text(const std::string& path, std::string_view content, const TextOptions& options) {
  if (options.text_column.empty()) throw UserError("no text column was given; expected its name or number");
  const TextFormat format = format_of(path, options);
  refuse_wide_text(path, content);
  TextCollector collector(path, options);
  if (format == TextFormat::kJsonl) {
    if (options.separator) refuse_file(path, "it is JSONL, which has no data.separator; leave that out");
    collect_json_lines(content, options, collector);
  } else {
    collect_table(path, content, format, options, collector);
  }
  return collector.finish();
}

}  // namespace cosformer::data
