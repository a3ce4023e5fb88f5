#include "data/readers/unlabelled/prediction_input.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/white_space.h"
#include "base/parse_number.h"
#include "data/dataset/smaller_images.h"
#include "data/readers/delimited_text.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/images/image_sequence.h"
#include "data/readers/number_reader.h"
#include "data/readers/table_columns.h"
#include "data/readers/unlabelled/prediction_lines.h"
#include "data/tasks/task_parts.h"

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

// Named by the line on which each begins.
PredictionInput named_by_line(Loaded loaded) {
  PredictionInput input;
  for (const std::uint64_t line : loaded.lines) input.names.push_back(std::to_string(line));
  input.dataset = std::move(loaded.dataset);
  input.report = std::move(loaded.report);
  return input;
}

// Of texts: what is asked for, or what the name tells.
std::string format_of(const std::string& path, const PredictionOptions& options) {
  if (options.format != "auto") return options.format;
  std::string name = path;
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const auto& [ending, meaning] :
       {std::pair{".tsv", "tsv"}, {".csv", "csv"}, {".jsonl", "jsonl"}, {".ndjson", "jsonl"}}) {
    if (name.ends_with(ending)) return meaning;
  }
  return "lines";
}

PredictionInput read_by_line(const Request& request) {
  PredictionLines lines(request.name, request.config, request.info, request.rows());
  PredictionInput input = lines.read(request.content());
  if (!input.dataset) refuse_empty(request.name, input.report);
  return input;
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
  const std::string format = format_of(request.path, request.options);
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
  UnknownLabels unknown;
  options.unknown = &unknown;
  PredictionInput input = named_by_line(parse_text(request.name, request.content(), options));
  input.unknown = std::move(unknown);
  return input;
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
      note = fmt::format("column {} is read as a number of the sequence; if it is the label, say --labelled", column);
    }
  }
  options.label_column = labelled ? column : "";
  UnknownLabels unknown;
  options.unknown = &unknown;
  PredictionInput input = named_by_line(parse_numbers(request.name, content, options));
  input.note = note;
  input.unknown = std::move(unknown);
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
  refuse_file(request.name, fmt::format("its images have {} x {} pixels; expected {} x {} as in training", found.width,
                                        found.height, trained.width, trained.height));
}

}  // namespace

void require_possible(const DataConfig& config, const PredictionOptions& options) {
  const std::vector<std::string> formats = {"auto", "lines", "tsv", "csv", "jsonl"};
  if (std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    throw UserError(
        fmt::format("the input's format is {}; expected auto, lines, tsv, csv or jsonl", excerpt(options.format)));
  }
  task_kind(config.task);
}

bool is_by_line(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                const PredictionOptions& options) {
  if (config.task == "listops") return true;
  const bool is_text = info.width == 0 && config.task != "token_sequences" && config.task != "value_sequences";
  return is_text && format_of(path, options) == "lines";
}

PredictionInput read_prediction_input(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                                      const PredictionOptions& options) {
  require_possible(config, options);
  const bool standard = path == "-";
  DatasetInfo trained = info;  // the images of the files are as large as before they were shrunk for training
  trained.width *= config.shrink;
  trained.height *= config.shrink;
  const Request request{standard ? "standard input" : path, standard ? "" : path, config, trained, options};
  PredictionInput input;
  if (is_by_line(path, config, info, options)) {
    input = read_by_line(request);
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
