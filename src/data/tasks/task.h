// From settings to data: the section [data] of a run, and the training, validation and test parts that it means.
//
// Where each task looks for its files is said by `layout_of` and in every message about a missing one. Whatever the
// source, the three parts number their classes and tokens alike. What is measured on them: floor.h; what a trained
// model is asked about: prediction_input.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "data/batches/epoch_plan.h"
#include "data/dataset/row_report.h"
#include "data/dataset/subset.h"
#include "data/tasks/generated_splits.h"

namespace cosformer::data {

struct DataConfig {
  // listops, text, retrieval, image, pathfinder (Long Range Arena), fashion_mnist; the user's own: text_files,
  // text_pairs, text_to_text, idx_images, png_images, token_sequences, value_sequences.
  std::string task = "fashion_mnist";
  std::string
      path;  // a task's folder; of own data the training file or folder. Empty: where the task's data usually is
  std::string valid_path, test_path;                             // own data; empty: held out of the training part
  std::string labels_path, valid_labels_path, test_labels_path;  // idx_images; empty: beside the images
  std::string format = "auto";                                   // of tables: auto (by name), tsv, csv, jsonl
  std::string separator = "auto";  // of tables: auto (by name), tab, comma, semicolon, bar, space, or a character
  std::string header = "auto";     // of tables: auto, yes, no
  std::string text_column = "text";
  std::string second_text_column;                                  // empty: "second_text" for text_pairs
  std::string source_column = "source", target_column = "target";  // text_to_text
  std::string label_column;                                        // empty: "label"; of sequences the first column
  std::string reading = "auto";                                    // auto, tokens, values
  std::int64_t max_length = 0;                                     // longer sequences are cut; 0: the task's own
  std::int64_t vocabulary = 0;                                     // token_sequences; 0: as the training part needs
  double valid_fraction = 0.1;                                     // of what is there for training
  double test_fraction = 0.1;                                      // own data without a test part
  std::int64_t split_seed = 0;                                     // which examples are held out
  bool lra_quirks = false;               // text: the test part is the validation part as well, as in LRA's code
  std::string retrieval_source = "aan";  // aan, same_article
  std::int64_t passage_least = 0;        // same_article: bytes of the shortest passage; 0: a quarter of the longest
  std::int64_t image_size = 32;          // pathfinder
  std::int64_t shrink = 1;               // images: a pixel is the mean of so many by so many
  std::int64_t generate_seed = 0;        // listops, pathfinder, recall, same_article
  std::int64_t generate_train = 0, generate_valid = 0, generate_test = 0;  // 0: the task's own
  std::int64_t generate_longer_than = 0, generate_shorter_than = 0;        // listops: symbols; 0: as published
  std::int64_t train_limit = 0, valid_limit = 0, test_limit = 0;           // so many examples, drawn; 0: all
  bool skip_bad_rows = false;
};

// The keys "data.task", "data.path" and so on. `config` must outlive `settings`.
void add_settings(Settings& settings, DataConfig& config);

std::vector<std::string> task_names();

// Which files a task accepts and how to come by them, in a few lines.
std::string layout_of(const std::string& task);

struct TaskData {
  DatasetPointer train, valid, test;
  std::string description;         // one line: task, source, sizes
  std::vector<std::string> notes;  // what one should know before believing a number: skipped rows, stand-ins, cuts
  LoadReport report;               // of all files together
  bool valid_is_test = false;
  std::int64_t max_length = 0;            // of the longest sequence in any part
  Reading reading = Reading::kAsContent;  // as the settings ask
};

// Throws UserError when the files are missing or wrong, or the settings contradict themselves.
TaskData open_task(const DataConfig& config, const Progress& progress = {});

// Longer sequences are cut to it; 0: none is.
std::int64_t effective_max_length(const DataConfig& config);

// The checked meaning of config.reading.
Reading reading_of(const DataConfig& config);

}  // namespace cosformer::data
