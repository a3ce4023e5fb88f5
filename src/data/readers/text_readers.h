// Text classification from files: LRA's two text tasks and the user's own data. Text is its bytes (dataset.h says which
// ids they have); a row without text is a bad row. All files may be gzip.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/row_report.h"
#include "data/readers/class_labels.h"

namespace cosformer::data {

enum class TextFormat {
  // By the file's ending: .tsv .csv .jsonl (also .ndjson), with or without .gz; others where a separator is given are
  // read as CSV.
  kByName,
  kTsv,    // columns separated by tabs, no quoting
  kCsv,    // RFC 4180
  kJsonl,  // a JSON object on each line
};

struct TextOptions {
  std::string name = "text";
  TextFormat format = TextFormat::kByName;
  // Columns by name, or by number counted from 1. In JSONL they are keys.
  std::string text_column = "text";
  std::string second_text_column;      // empty: one text a row
  std::string label_column = "label";  // empty: the rows have no label
  bool label_optional = false;         // a table without that column, a row without that key: no label
  std::optional<char> separator;       // of columns; by default a comma in CSV and a tab in TSV
  std::optional<bool> header;          // by default there is one when a column is given by name
  std::vector<std::string> classes;    // given: no other labels are accepted, and labels get these numbers
  UnknownLabels* unknown = nullptr;    // with classes: where rows with other labels are counted, which then have none
  std::size_t max_length = 0;          // bytes kept of each text; 0: all
  RowPolicy rows;
};
Loaded load_text(const std::string& path, const TextOptions& options = {});
// The same of what a file holds; `name` is for messages, and for the format where that is not said.
Loaded parse_text(const std::string& name, std::string_view content, const TextOptions& options = {});

struct ImdbOptions {
  std::size_t max_length = 0;
  RowPolicy rows;
};
enum class ImdbPart { kTrain, kTest };
// The folder aclImdb as published: {train,test}/{neg,pos}/*.txt.
Loaded load_imdb_folder(const std::string& folder, ImdbPart part, const ImdbOptions& options = {});
// A TSV file without header, the label (0, 1, neg or pos) in its first column and the text in its last.
Loaded load_imdb_tsv(const std::string& path, const ImdbOptions& options = {});

// AAN pairs as LRA publishes them: TSV of label (0.0 or 1.0), two ids, two texts; no header, no quoting.
Loaded load_aan(const std::string& path, const ImdbOptions& options = {});

}  // namespace cosformer::data
