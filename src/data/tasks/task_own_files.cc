// The user's own files as tasks: the training file decides classes and tokens, the others follow it.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/white_space.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/number_reader.h"
#include "data/readers/table_columns.h"
#include "data/tasks/task_parts.h"

namespace cosformer::data {
namespace {

// Loads the training part, then the others that are named. `load(path, labels_path, train)` gets the training part once
// there is one.
template <typename Load>
TaskParts load_parts(const DataConfig& config, Load&& load) {
  TaskParts parts;
  const std::string path = path_of(config);
  if (!is_file(path) && !is_folder(path)) refuse_missing(config, path);
  parts.source = "'" + path + "'";
  parts.train = parts.take(load(path, config.labels_path, nullptr));
  const Dataset* train = parts.train.get();
  if (!config.valid_path.empty()) {
    parts.valid = parts.take(load(config.valid_path, config.valid_labels_path, train));
  }
  if (!config.test_path.empty()) parts.test = parts.take(load(config.test_path, config.test_labels_path, train));
  return parts;
}

// The first row is alone with its class, where most classes have several.
bool first_is_alone(const Dataset& train) {
  std::vector<std::size_t> counts(train.info().classes.size());
  for (std::size_t i = 0; i < train.size(); ++i) ++counts[static_cast<std::size_t>(train.label(i))];
  const auto several = std::count_if(counts.begin(), counts.end(), [](std::size_t count) { return count > 1; });
  return counts[static_cast<std::size_t>(train.label(0))] == 1 && several > 0 &&
         2 * static_cast<std::size_t>(several) + 1 >= counts.size();
}

// The first row has a word for each text, where nearly all others have several.
bool first_is_words(const Dataset& pairs) {
  const auto is_word = [](const SequenceView& text) {
    const auto* begin = static_cast<const char*>(text.data);
    return std::none_of(begin, begin + text.size, is_space);
  };
  const auto are_words = [&](const Example& e) { return is_word(e.first) && is_word(e.second); };
  if (!are_words(pairs.get(0))) return false;
  std::size_t others = 0;
  for (std::size_t i = 1; i < pairs.size(); ++i) others += are_words(pairs.get(i)) ? 1 : 0;
  return 10 * others < pairs.size();
}

// A header that was read as an example is one of a class that nobody else has, or words among sentences.
void note_lone_first_row(const DataConfig& config, TaskParts& parts) {
  constexpr std::size_t kFewExamples = 8;
  const Dataset& train = *parts.train;
  if (header_of(config).has_value() || train.size() < kFewExamples) return;
  if (config.task == "text_to_text") {
    if (!column_number(config.source_column) || !column_number(config.target_column) || !first_is_words(train)) return;
    const Example first = train.get(0);
    const auto text = [](const SequenceView& s) { return excerpt({static_cast<const char*>(s.data), s.size}); };
    parts.notes.push_back(
        fmt::format("the first row is {} and {}; if it is the header of the table, say so with data.header=yes",
                    text(first.first), text(first.second)));
    return;
  }
  if (!first_is_alone(train)) return;
  parts.notes.push_back(fmt::format(
      "the first row is the only example of class '{}'; if it is the header of the table, say so with data.header=yes",
      train.info().classes[static_cast<std::size_t>(train.label(0))]));
}

// The labels beside a file of images, by the names that MNIST uses.
std::string labels_beside(const std::string& images) {
  std::string labels = images;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"images", "labels"}, {"idx3", "idx1"}}) {
    const std::size_t slash = labels.rfind('/') == std::string::npos ? 0 : labels.rfind('/');
    const std::size_t found = labels.find(from, slash);
    if (found != std::string::npos) labels.replace(found, from.size(), to);
  }
  if (labels == images || !is_file(labels)) {
    throw UserError(
        fmt::format("the labels of '{}' are not known; expected data.labels_path (data.valid_labels_path, "
                    "data.test_labels_path) or a file beside it with 'labels-idx1' for 'images-idx3' in its name",
                    images));
  }
  return labels;
}

}  // namespace

TaskParts open_text_files(const DataConfig& config, const Progress&) {
  TextOptions options = text_options(config);
  TaskParts parts = load_parts(config, [&](const std::string& path, const std::string&, const Dataset* train) {
    if (train != nullptr) options.classes = train->info().classes;
    return load_text(path, options);
  });
  note_lone_first_row(config, parts);
  return parts;
}

TaskParts open_idx_images(const DataConfig& config, const Progress&) {
  DataConfig files = config;
  const std::string folder = path_of(config);
  if (is_folder(folder)) {
    const auto named = [&](const std::string& part) {
      const std::string path = folder + "/" + part + "-images-idx3-ubyte";
      return is_file(path) ? path : path + ".gz";
    };
    files.path = named("train");
    if (!is_file(files.path)) refuse_missing(config, folder);
    if (files.test_path.empty() && is_file(named("t10k"))) files.test_path = named("t10k");
  }
  IdxOptions options;
  options.name = config.task;
  options.rows.skip_bad_rows = config.skip_bad_rows;
  return load_parts(files, [&](const std::string& path, const std::string& labels, const Dataset* train) {
    if (train != nullptr) options.classes = train->info().classes;
    return load_idx(path, labels.empty() ? labels_beside(path) : labels, options);
  });
}

TaskParts open_png_images(const DataConfig& config, const Progress&) {
  DataConfig folders = config;
  const std::string root = path_of(config);
  if (is_folder(root + "/train") && is_folder(root + "/test")) {
    folders.path = root + "/train";
    if (folders.test_path.empty()) folders.test_path = root + "/test";
    for (const char* name : {"/valid", "/val"}) {
      if (folders.valid_path.empty() && is_folder(root + name)) folders.valid_path = root + name;
    }
  }
  PngFolderOptions options;
  options.name = config.task;
  options.rows.skip_bad_rows = config.skip_bad_rows;
  return load_parts(folders, [&](const std::string& path, const std::string&, const Dataset* train) {
    if (train != nullptr) options.classes = train->info().classes;
    return load_png_folder(path, options);
  });
}

TaskParts open_sequences(const DataConfig& config, const Progress&) {
  NumberOptions options;
  options.name = config.task;
  options.content = config.task == "token_sequences" ? Content::kTokens : Content::kValues;
  options.label_column = sequence_label_column(config);
  options.header = header_of(config);
  options.delimiter = separator_of(config).value_or(options.delimiter);
  options.vocabulary = config.vocabulary;
  options.rows.skip_bad_rows = config.skip_bad_rows;
  TaskParts parts = load_parts(config, [&](const std::string& path, const std::string&, const Dataset* train) {
    if (train != nullptr) {
      options.classes = train->info().classes;
      options.vocabulary = train->info().vocabulary;
    }
    return load_numbers(path, options);
  });
  note_lone_first_row(config, parts);
  return parts;
}

}  // namespace cosformer::data
