// The table of tasks, and the settings that say which of them is meant and where it lies.
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "data/corpus/language_config.h"
#include "data/readers/images/image_readers.h"
#include "data/tasks/recall/recall_config.h"
#include "data/tasks/task_parts.h"

namespace cosformer::data {
namespace {

// Far beyond what the tasks are: a slip of the finger is an error, not a night's work.
constexpr std::int64_t kMostGenerated = 100'000'000, kLongestGenerated = 10'000'000;

}  // namespace

const std::vector<TaskKind>& task_kinds() {
  static const std::vector<TaskKind> kinds = {
      {"listops", "data/listops", 2000,
       "a folder with listops-{train,valid,test}.data as `cosformer data listops --out FOLDER` makes them, or with the "
       "published basic_{train,val,test}.tsv; in a folder without either they are generated",
       open_listops},
      {"text", "data/imdb", 4096,
       "the published folder aclImdb with {train,test}/{neg,pos}/*.txt, or a folder with train.tsv and test.tsv (gzip "
       "or not; the label 0, 1, neg or pos first, the text last), or the path of such a train.tsv. The reviews are "
       "published at https://ai.stanford.edu/~amaas/data/sentiment/",
       open_text},
      {"retrieval", "data/aan", 4000,
       "a folder with the published new_aan_pairs.{train,eval,test}.tsv (of LRA's release; gzip or not). Without them, "
       "data.retrieval_source=same_article makes a stand-in from a text file of articles separated by blank lines",
       open_retrieval},
      {"image", "data/cifar10", 0,
       "a folder with the published CIFAR-10 binaries data_batch_{1,2,3,4,5}.bin and test_batch.bin, or a file (or a "
       "folder with one .bin file) of records of a label byte and 1,024 gray or 3,072 colour bytes, of which the last "
       "sixth is the test part. The binaries are published at https://www.cs.toronto.edu/~kriz/cifar.html",
       open_image},
      {"pathfinder", "data/pathfinder", 0,
       "a folder with pathfinder32-{train,valid,test}.data as `cosformer data pathfinder --out FOLDER` makes them, or "
       "the published folder with metadata/ beside the images (divided 80/10/10); in a folder without either they are "
       "generated",
       open_pathfinder},
      {"fashion_mnist", kFashionMnistFolder, 0,
       "the folder of the package dataset-fashion-mnist (apt-get install dataset-fashion-mnist), or another with "
       "{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz",
       open_fashion_mnist},
      {"text_files", nullptr, 4096,
       "a file of .tsv, .csv or .jsonl (gzip or not), its columns named by data.text_column and data.label_column; "
       "data.valid_path and data.test_path likewise",
       open_text_files},
      {"text_pairs", nullptr, 4096,
       "a file of .tsv, .csv or .jsonl (gzip or not), its columns named by data.text_column, data.second_text_column "
       "and data.label_column; data.valid_path and data.test_path likewise",
       open_text_files},
      {"text_to_text", nullptr, 4096,
       "a file of .tsv, .csv or .jsonl (gzip or not), its columns named by data.source_column and data.target_column; "
       "data.valid_path and data.test_path likewise",
       open_text_files},
      {"idx_images", nullptr, 0,
       "a file of images in IDX form (gzip or not) and data.labels_path, a file of labels, or a folder with the names "
       "of MNIST: {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz",
       open_idx_images},
      {"png_images", nullptr, 0,
       "a folder with a folder of PNG files for each class, named after it, or with train/ and test/ (and valid/) of "
       "that kind; all images of one size",
       open_png_images},
      {"token_sequences", nullptr, 0,
       "a file of CSV (gzip or not): a row is a label and whole numbers from 0 on; data.label_column says which column "
       "is the label, the first by default",
       open_sequences},
      {"value_sequences", nullptr, 0,
       "a file of CSV (gzip or not): a row is a label and real numbers; data.label_column says which column is the "
       "label, the first by default",
       open_sequences},
  };
  return kinds;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskKind& kind : task_kinds()) names.emplace_back(kind.name);
  return names;
}

const TaskKind& task_kind(const std::string& name) {
  for (const TaskKind& kind : task_kinds()) {
    if (name == kind.name) return kind;
  }
  const std::string near = nearest_name(name, task_names());
  std::string all;
  for (const std::string& known : task_names()) all += (all.empty() ? "" : ", ") + known;
  throw UserError(fmt::format("there is no task {}{}; expected one of {}", excerpt(name),
                              near.empty() ? "" : fmt::format("; did you mean {}?", near), all));
}

std::string layout_of(const std::string& task) {
  return task_kind(task).layout;
}

std::int64_t effective_max_length(const DataConfig& config) {
  return config.max_length > 0 ? config.max_length : task_kind(config.task).max_length;
}

std::string path_of(const DataConfig& config) {
  if (!config.path.empty()) return config.path;
  const TaskKind& kind = task_kind(config.task);
  if (kind.usual_path == nullptr) {
    throw UserError(
        fmt::format("no data was named (--data, or data.path); the task '{}' needs {}", config.task, kind.layout));
  }
  return kind.usual_path;
}

void refuse_missing(const DataConfig& config, const std::string& path) {
  throw UserError(fmt::format("cannot find the data of the task '{}' at '{}'. Name with --data (or data.path) {}",
                              config.task, path, layout_of(config.task)));
}

std::optional<bool> header_of(const DataConfig& config) {
  if (config.header == "auto") return std::nullopt;
  if (config.header != "yes" && config.header != "no") {
    throw UserError(fmt::format("data.header is {}; expected auto, yes or no", excerpt(config.header)));
  }
  return config.header == "yes";
}

std::optional<char> separator_of(const DataConfig& config) {
  const std::string& text = config.separator;
  if (text == "auto") return std::nullopt;
  for (const auto& [name, character] :
       {std::pair{"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"bar", '|'}, {"space", ' '}, {"\\t", '\t'}}) {
    if (text == name) return character;
  }
  const bool is_mark = text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80 && text != "\"" &&
                       std::isalnum(static_cast<unsigned char>(text[0])) == 0 && text != "\n" && text != "\r";
  if (!is_mark) {
    throw UserError(
        fmt::format("data.separator is {}; expected auto, tab, comma, semicolon, bar, space, or a single character "
                    "that is no letter, digit or quote",
                    excerpt(text)));
  }
  return text[0];
}

Reading reading_of(const DataConfig& config) {
  if (config.reading == "auto") return Reading::kAsContent;
  if (config.reading == "tokens") return Reading::kTokens;
  if (config.reading == "values") return Reading::kValues;
  throw UserError(fmt::format("data.reading is {}; expected auto, tokens or values", excerpt(config.reading)));
}

TextOptions text_options(const DataConfig& config) {
  TextOptions options;
  options.name = config.task;
  if (config.format == "tsv") {
    options.format = TextFormat::kTsv;
  } else if (config.format == "csv") {
    options.format = TextFormat::kCsv;
  } else if (config.format == "jsonl") {
    options.format = TextFormat::kJsonl;
  } else if (config.format != "auto") {
    throw UserError(fmt::format("data.format is {}; expected auto, tsv, csv or jsonl", excerpt(config.format)));
  }
  options.text_column = config.text_column;
  if (config.task == "text_pairs") {
    options.second_text_column = config.second_text_column.empty() ? "second_text" : config.second_text_column;
  }
  options.label_column = config.label_column.empty() ? "label" : config.label_column;
  if (config.task == "text_to_text") {
    options.text_column = config.source_column;
    options.second_text_column = config.target_column;
    options.label_column.clear();
  }
  options.header = header_of(config);
  options.separator = separator_of(config);
  options.max_length = static_cast<std::size_t>(effective_max_length(config));
  options.rows.skip_bad_rows = config.skip_bad_rows;
  return options;
}

std::string sequence_label_column(const DataConfig& config) {
  return config.label_column.empty() ? "1" : config.label_column;
}

void add_settings(Settings& settings, DataConfig& config) {
  std::vector<std::string> tasks = task_names();
  for (const std::string& task : language_tasks()) tasks.push_back(task);
  tasks.emplace_back(kRecallTask);
  settings.add("data.task", config.task, "This task says what is learned and how the data are read.", tasks);
  settings.add("data.path", config.path,
               "The task's data are read from this folder, your own data from this training file; empty: data/TASK or "
               "the installed package.");
  settings.add("data.valid_path", config.valid_path,
               "Your own validation data are read from this file; empty: they are held out of the training part.");
  settings.add("data.test_path", config.test_path,
               "Your own test data are read from this file; empty: they are held out of the training part.");
  settings.add("data.labels_path", config.labels_path,
               "The training labels of idx_images are read from this file; empty: the one that is named like the file "
               "of the images.");
  settings.add("data.valid_labels_path", config.valid_labels_path,
               "The validation labels of idx_images are read from this file; empty: the one that is named like "
               "data.valid_path.");
  settings.add(
      "data.test_labels_path", config.test_labels_path,
      "The test labels of idx_images are read from this file; empty: the one that is named like data.test_path.");
  settings.add("data.format", config.format, "Tables of text are read in this format; auto: by the files' names.",
               {"auto", "tsv", "csv", "jsonl"});
  settings.add("data.separator", config.separator,
               "This separates the columns of tables: tab, comma, semicolon, bar, space or another character; auto: by "
               "the files' names.");
  settings.add("data.header", config.header,
               "The first row of a table is taken for the columns' names, or is not; auto: it is when a column is "
               "given by name.",
               {"auto", "yes", "no"});
  settings.add("data.text_column", config.text_column,
               "The text is in this column: its name, its number from 1, or its JSON key.");
  settings.add("data.second_text_column", config.second_text_column,
               "The second text of text_pairs is in this column; empty: second_text.");
  settings.add("data.source_column", config.source_column, "The text that text_to_text reads is in this column.");
  settings.add("data.target_column", config.target_column, "The text that text_to_text is to write is in this column.");
  settings.add("data.label_column", config.label_column,
               "The label is in this column; empty: the one called label, and column 1 of sequences.");
  settings.add("data.reading", config.reading,
               "Pixels are read as real values, or as tokens of an alphabet of 256; auto: as suits the data.",
               {"auto", "tokens", "values"});
  settings.add("data.max_length", config.max_length,
               "Sequences are cut to this many tokens; 0: to the task's own limit.", 0, std::int64_t{1} << 30);
  settings.add("data.vocabulary", config.vocabulary,
               "Tokens of token_sequences are below this number, which counts the two ids that are kept for padding; "
               "0: as the data need.",
               0, std::int64_t{1} << 30);
  settings.add("data.valid_fraction", config.valid_fraction,
               "This share of the training part is held out for validation, where no file is given for it.", 0, 0.9);
  settings.add("data.test_fraction", config.test_fraction,
               "This share of your own data is held out for the test, where no file is given for it.", 0, 0.9);
  settings.add("data.split_seed", config.split_seed, "Which examples are held out follows from this number.");
  settings.add(
      "data.lra_quirks", config.lra_quirks,
      "The task text validates on its test part, as the published code does; for comparison with published numbers.");
  settings.add("data.retrieval_source", config.retrieval_source,
               "The pairs of retrieval are the published ones, or passages of one or two articles as a stand-in.",
               {"aan", "same_article"});
  settings.add("data.passage_least", config.passage_least,
               "A passage of the stand-in same_article has at least this many bytes; 0: a quarter of data.max_length.",
               0, std::int64_t{1} << 30);
  settings.add("data.image_size", config.image_size,
               "Images of pathfinder have this many pixels a side: 32, 64, 128 (Path-X) or 256.", 1, 1024);
  settings.add("data.shrink", config.shrink,
               "The mean of a square of this many pixels a side becomes one pixel, so that images are shorter "
               "sequences; 1: as they are.",
               1, 1024);
  settings.add(
      "data.generate_seed", config.generate_seed,
      "Which examples of listops, pathfinder, recall and same_article are generated follows from this number.");
  settings.add("data.generate_train", config.generate_train,
               "This many training examples are generated; 0: as many as published, of recall 100000 an epoch.", 0,
               kMostGenerated);
  settings.add("data.generate_valid", config.generate_valid,
               "This many validation examples are generated; 0: as many as published, of recall 2000.", 0,
               kMostGenerated);
  settings.add("data.generate_test", config.generate_test,
               "This many test examples are generated; 0: as many as published, of recall 2000.", 0, kMostGenerated);
  settings.add("data.generate_longer_than", config.generate_longer_than,
               "Expressions of listops have more symbols than this; 0: as published.", 0, kLongestGenerated);
  settings.add("data.generate_shorter_than", config.generate_shorter_than,
               "Expressions of listops have fewer symbols than this; 0: as published.", 0, kLongestGenerated);
  settings.add("data.train_limit", config.train_limit,
               "Only this many training examples, drawn by data.split_seed, are used; 0: all.");
  settings.add("data.valid_limit", config.valid_limit,
               "Only this many validation examples, drawn by data.split_seed, are used; 0: all.");
  settings.add("data.test_limit", config.test_limit,
               "Only this many test examples, drawn by data.split_seed, are used; 0: all.");
  settings.add("data.skip_bad_rows", config.skip_bad_rows,
               "Rows that cannot be read are left out and counted; otherwise the first one ends the program.");
}

}  // namespace cosformer::data
