#include "data/prediction_input.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/parse_number.h"
#include "data/delimited_text.h"
#include "data/file_content.h"
#include "data/image_readers.h"
#include "data/image_sequence.h"
#include "data/listops.h"
#include "data/number_reader.h"
#include "data/smaller_images.h"
#include "data/table_columns.h"
#include "data/task_parts.h"
#include "data/text_encoding.h"
#include "data/white_space.h"

namespace cosformer::data {
namespace {

struct Request {
  std::string name;  // for messages
  std::string path;  // empty: standard input
  const DataConfig& config;
  const DatasetInfo& info;
  const PredictionOptions& options;

  RowPolicy rows() const { return {options.skip_bad_rows}; }
  std::string content() const { return read_content(path.empty() ? "/dev/stdin" : path); }
};

// Names by line, and whether all have labels.
PredictionInput named_by_line(Loaded loaded) {
  PredictionInput input;
  for (const std::uint64_t line : loaded.lines) input.names.push_back(std::to_string(line));
  input.dataset = std::move(loaded.dataset);
  input.report = std::move(loaded.report);
  return input;
}

// Calls `add(line)` for each line that is not blank; what it throws is why the line is bad.
template <typename Add>
Loaded read_lines(const Request& request, DatasetBuilder& builder, Add&& add) {
  RowReporter reporter(request.rows());
  const std::string content = request.content();
  refuse_wide_text(request.name, content);
  DelimitedText lines(content, '\n', Quoting::kNone);  // a line has one field: itself
  for (DelimitedText::Row row; lines.next(row);) {
    std::string_view line = row.fields.front();
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    try {
      add(line);
      reporter.used_line(row.line);
    } catch (const UserError& error) {
      reporter.bad(request.name, "line", row.line, error.what());
    }
  }
  DatasetInfo info = request.info;
  info.provenance.clear();
  return reporter.finish(request.name, builder, std::move(info));
}

PredictionInput read_listops(const Request& request) {
  DatasetBuilder builder(ElementType::kU8);
  return named_by_line(read_lines(request, builder, [&](std::string_view line) {
    // The published files have the value behind a tab; it is computed here.
    const std::vector<listops::Symbol> symbols = listops::parse(line.substr(0, line.find('\t')));
    builder.add(std::span<const listops::Symbol>(symbols), listops::evaluate(symbols));
  }));
}

PredictionInput read_text_lines(const Request& request) {
  const bool pairs = request.info.pairs;
  const auto most = static_cast<std::size_t>(effective_max_length(request.config));
  const auto cut = [&](std::string_view text) { return most == 0 ? text : text.substr(0, most); };
  DatasetBuilder builder(ElementType::kU8, pairs);
  return named_by_line(read_lines(request, builder, [&](std::string_view line) {
    const std::size_t tab = pairs ? line.find('\t') : line.size();
    if (tab == std::string_view::npos || tab == 0 || (pairs && tab + 1 == line.size())) {
      throw UserError("it is " + excerpt(line) + "; expected two texts with a tab between them");
    }
    builder.add_pair(cut(line.substr(0, tab)), pairs ? cut(line.substr(tab + 1)) : std::string_view(), kNoLabel);
  }));
}

// Whether a TSV file is laid out as the task's data is published: without the header that our columns need.
bool is_published_layout(const Request& request, const std::string& column) {
  if (request.path.empty() || (request.config.task != "text" && request.config.task != "retrieval")) return false;
  const std::string content = request.content();
  DelimitedText rows(content, '\t', Quoting::kNone);
  DelimitedText::Row row;
  if (!rows.next(row) || column_number(column)) return false;
  const bool named = std::find(row.fields.begin(), row.fields.end(), column) != row.fields.end();
  return !named && row.fields.size() >= 2;
}

PredictionInput read_text(const Request& request) {
  std::string format = request.options.format, name = request.path;
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (format == "auto") {
    format = "lines";
    for (const auto& [ending, meaning] :
         {std::pair{".tsv", "tsv"}, {".csv", "csv"}, {".jsonl", "jsonl"}, {".ndjson", "jsonl"}}) {
      if (name.ends_with(ending)) format = meaning;
    }
  }
  if (format == "lines") return read_text_lines(request);
  DataConfig config = request.config;
  config.format = format;
  TextOptions options = text_options(config);
  if (request.info.pairs && options.second_text_column.empty()) {
    options.second_text_column = config.second_text_column.empty() ? "second_text" : config.second_text_column;
  }
  if (request.config.task == "text_to_text") options.second_text_column.clear();  // what a target would say is asked
  if (format == "tsv" && is_published_layout(request, options.text_column)) {
    const ImdbOptions published = {options.max_length, request.rows()};
    return named_by_line(request.info.pairs ? load_aan(request.path, published)
                                            : load_imdb_tsv(request.path, published));
  }
  options.name = request.info.name;
  options.classes = request.info.classes;
  options.label_optional = true;
  options.rows = request.rows();
  return named_by_line(parse_text(request.name, request.content(), options));
}

bool is_number(const std::string& text) {
  double number = 0;
  return parse_number(text, number);
}

// Whether rows have a label is told by a header that names it, by a class that is no number, or by the user.
PredictionInput read_sequences(const Request& request) {
  const std::string content = request.content();
  NumberOptions options;
  options.name = request.info.name;
  options.content = request.info.content;
  options.vocabulary = request.info.vocabulary;
  options.classes = request.info.classes;
  options.delimiter = separator_of(request.config).value_or(options.delimiter);
  options.header = header_of(request.config).value_or(false);
  options.rows = request.rows();
  const std::string column = sequence_label_column(request.config);
  const std::optional<std::size_t> number = column_number(column);
  DelimitedText rows(content, options.delimiter, Quoting::kRfc4180);
  DelimitedText::Row first;
  rows.next(first);
  std::string note;
  bool labelled = request.options.labelled;
  if (!number) {
    const bool named = std::find(first.fields.begin(), first.fields.end(), column) != first.fields.end();
    labelled = labelled || named;
    if (labelled) options.header = true;
  } else if (!labelled) {
    if (*options.header) rows.next(first);
    const std::string field(*number <= first.fields.size() ? trimmed(first.fields[*number - 1]) : "");
    const bool is_class = std::find(options.classes.begin(), options.classes.end(), field) != options.classes.end();
    labelled = is_class && !is_number(field);
    if (is_class && !labelled) {
      note = "column " + column + " is read as a number of the sequence; if it is the label, say --labelled";
    }
  }
  options.label_column = labelled ? column : "";
  PredictionInput input = named_by_line(parse_numbers(request.name, content, options));
  input.note = note;
  return input;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

PredictionInput read_png(const Request& request, const std::vector<std::string>& paths) {
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(request.rows());
  PngCollector images(builder, reporter, request.info.width, request.info.height);
  PredictionInput input;
  for (const std::string& path : paths) {
    const std::size_t before = builder.size();
    images.add(path, kNoLabel);
    if (builder.size() > before) input.names.push_back(path == "/dev/stdin" ? "-" : file_name(path));
  }
  Loaded loaded = reporter.finish(
      request.name, builder, describe_images(request.info.name, images.width(), images.height(), request.info.classes));
  input.dataset = std::move(loaded.dataset);
  input.report = std::move(loaded.report);
  return input;
}

PredictionInput numbered(Loaded loaded) {
  PredictionInput input;
  for (std::size_t i = 0; i < loaded.dataset->size(); ++i) input.names.push_back(std::to_string(i + 1));
  input.dataset = std::move(loaded.dataset);
  input.report = std::move(loaded.report);
  return input;
}

PredictionInput read_images(const Request& request) {
  if (request.path.empty()) return read_png(request, {"/dev/stdin"});
  if (is_folder(request.path)) {
    std::vector<std::string> paths;
    for (const std::string& name : names_in_folder(request.path, ".png")) paths.push_back(request.path + "/" + name);
    if (paths.empty()) refuse_file(request.path, "the folder holds no file that ends in .png");
    return read_png(request, paths);
  }
  const std::string content = read_content(request.path);
  if (content.starts_with("\x89PNG")) return read_png(request, {request.path});
  if (content.starts_with(std::string_view("\0\0\x08\x03", 4))) {
    IdxOptions options;
    options.name = request.info.name;
    options.classes = request.info.classes;
    options.rows = request.rows();
    return numbered(load_idx(request.path, "", options));
  }
  const bool records = !content.empty() && (content.size() % 1025 == 0 || content.size() % 3073 == 0);
  if (!records) refuse_file(request.path, "it is no image; expected PNG, IDX or a CIFAR-10 binary");
  CifarOptions options;
  options.rows = request.rows();
  Loaded loaded = load_cifar10({request.path}, options);
  if (loaded.dataset->info().classes != request.info.classes) {
    refuse_file(request.path,
                "it reads as a CIFAR-10 binary, but the model was trained on other classes; expected PNG "
                "or IDX");
  }
  return numbered(std::move(loaded));
}

void require_suitable(const Request& request, const DatasetInfo& found) {
  const DatasetInfo& trained = request.info;
  if (found.width == trained.width && found.height == trained.height) return;
  refuse_file(request.name, "its images have " + std::to_string(found.width) + " x " + std::to_string(found.height) +
                                " pixels; expected " + std::to_string(trained.width) + " x " +
                                std::to_string(trained.height) + " as in training");
}

}  // namespace

PredictionInput read_prediction_input(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                                      const PredictionOptions& options) {
  const std::vector<std::string> formats = {"auto", "lines", "tsv", "csv", "jsonl"};
  if (std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    throw UserError("the input's format is " + excerpt(options.format) + "; expected auto, lines, tsv, csv or jsonl");
  }
  task_kind(config.task);
  const bool standard = path == "-";
  DatasetInfo trained = info;  // the images of the files are as large as before they were shrunk for training
  trained.width *= config.shrink;
  trained.height *= config.shrink;
  const Request request{standard ? "standard input" : path, standard ? "" : path, config, trained, options};
  PredictionInput input;
  if (config.task == "listops") {
    input = read_listops(request);
  } else if (config.task == "token_sequences" || config.task == "value_sequences") {
    input = read_sequences(request);
  } else if (info.width > 0) {
    input = read_images(request);
  } else {
    input = read_text(request);
  }
  require_suitable(request, input.dataset->info());
  if (config.shrink > 1) input.dataset = smaller_images(input.dataset, config.shrink);
  if (const std::int64_t most = effective_max_length(config); most > 0) input.dataset = shorten(input.dataset, most);
  return input;
}

}  // namespace cosformer::data
