// load_imdb_folder, load_imdb_tsv and load_aan.
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/delimited_text.h"
#include "data/readers/file_content.h"
#include "data/readers/text_encoding.h"
#include "data/readers/text_readers.h"

namespace cosformer::data {
namespace {

DatasetInfo describe(std::string name, std::vector<std::string> classes) {
  DatasetInfo info;
  info.name = std::move(name);
  info.vocabulary = kByteVocabulary;
  info.classes = std::move(classes);
  return info;
}

std::string_view checked_text(std::string_view text, const ImdbOptions& options, RowReporter& reporter) {
  if (text.empty()) throw UserError("the text is empty; expected at least one character");
  if (options.max_length == 0 || text.size() <= options.max_length) return text;
  reporter.text_cut();
  return text.substr(0, options.max_length);
}

// Calls `add_row(fields)` for each row; what it throws is the reason why the row is bad.
template <typename AddRow>
void for_each_row(const std::string& path, RowReporter& reporter, AddRow&& add_row) {
  const std::string content = read_content(path);
  refuse_wide_text(path, content);
  DelimitedText rows(content, '\t', Quoting::kNone);
  for (DelimitedText::Row row; rows.next(row);) {
    try {
      add_row(row.fields);
      reporter.used_line(row.line);
    } catch (const UserError& error) {
      reporter.bad(path, "line", row.line, error.what());
    }
  }
}

}  // namespace

Loaded load_imdb_folder(const std::string& folder, ImdbPart part, const ImdbOptions& options) {
  const std::string part_folder = folder + (part == ImdbPart::kTrain ? "/train" : "/test");
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(options.rows);
  std::int32_t label = 0;
  for (const char* name : {"/neg", "/pos"}) {
    const std::string class_folder = part_folder + name;
    for (const std::string& file : names_in_folder(class_folder, ".txt")) {
      const std::string path = class_folder + "/" + file;
      try {
        const std::string content = read_content(path);
        builder.add(checked_text(content, options, reporter), label);
      } catch (const UserError& error) {
        reporter.bad_file(path, error.what());
      }
    }
    ++label;
  }
  return reporter.finish(part_folder, builder, describe("imdb", {"neg", "pos"}));
}

Loaded load_imdb_tsv(const std::string& path, const ImdbOptions& options) {
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(options.rows);
  for_each_row(path, reporter, [&](const std::vector<std::string>& fields) {
    if (fields.size() < 2) {
      throw UserError(
          fmt::format("it has {} columns; expected at least 2, the label first and the text last", fields.size()));
    }
    const std::string& label = fields.front();
    const bool positive = label == "1" || label == "pos";
    if (!positive && label != "0" && label != "neg") {
      throw UserError(fmt::format("the label is {}; expected 0, 1, neg or pos", excerpt(label)));
    }
    builder.add(checked_text(fields.back(), options, reporter), positive ? 1 : 0);
  });
  return reporter.finish(path, builder, describe("imdb", {"neg", "pos"}));
}

Loaded load_aan(const std::string& path, const ImdbOptions& options) {
  DatasetBuilder builder(ElementType::kU8, true);
  RowReporter reporter(options.rows);
  for_each_row(path, reporter, [&](const std::vector<std::string>& fields) {
    if (fields.size() != 5) {
      throw UserError(fmt::format("it has {} columns; expected 5: label, two ids, two texts", fields.size()));
    }
    const std::string& label = fields[0];
    const bool cites = label == "1.0" || label == "1";
    if (!cites && label != "0.0" && label != "0") {
      throw UserError(fmt::format("the label is {}; expected 0.0 or 1.0", excerpt(label)));
    }
    const std::string_view first = checked_text(fields[3], options, reporter);
    builder.add_pair(first, checked_text(fields[4], options, reporter), cites ? 1 : 0);
  });
  return reporter.finish(path, builder, describe("aan", {"unrelated", "related"}));
}

}  // namespace cosformer::data
