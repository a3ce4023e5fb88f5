// What the sources of a task hand to open_task: the parts they have, and what there is to say about them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/readers/text_readers.h"
#include "data/tasks/task.h"

namespace cosformer::data {

struct TaskParts {
  DatasetPointer train;        // of the source's own part for training
  DatasetPointer valid, test;  // null: to be held out of `train`
  std::string source;          // in words: "the published TSV files in 'data/listops'"
  LoadReport report;
  std::vector<std::string> notes;
  bool valid_is_test = false;

  // The data set; its report joins the others.
  DatasetPointer take(Loaded loaded) {
    report.add(loaded.report);
    return std::move(loaded.dataset);
  }
};

// The tasks of the Long Range Arena and Fashion-MNIST (task_published_files.cc).
TaskParts open_listops(const DataConfig& config, const Progress& progress);
TaskParts open_text(const DataConfig& config, const Progress& progress);
TaskParts open_retrieval(const DataConfig& config, const Progress& progress);
TaskParts open_image(const DataConfig& config, const Progress& progress);
TaskParts open_pathfinder(const DataConfig& config, const Progress& progress);
TaskParts open_fashion_mnist(const DataConfig& config, const Progress& progress);
// The user's own files (task_own_files.cc).
TaskParts open_text_files(const DataConfig& config, const Progress& progress);
TaskParts open_idx_images(const DataConfig& config, const Progress& progress);
TaskParts open_png_images(const DataConfig& config, const Progress& progress);
TaskParts open_sequences(const DataConfig& config, const Progress& progress);

struct TaskKind {
  const char* name;
  const char* usual_path;   // where its data is looked for by default; null: the user has to say
  std::int64_t max_length;  // longer sequences are cut; 0: none is
  const char* layout;       // which files it accepts, and how to come by them
  TaskParts (*open)(const DataConfig&, const Progress&);
};
const std::vector<TaskKind>& task_kinds();
// Throws UserError that suggests the nearest name.
const TaskKind& task_kind(const std::string& name);

// config.path, or the task's usual one. Throws UserError when there is neither.
std::string path_of(const DataConfig& config);
// "cannot find the data of task 'text' in 'PATH': expected ...".
[[noreturn]] void refuse_missing(const DataConfig& config, const std::string& path);

// The columns, format and header that the settings name; classes and rows are the caller's.
TextOptions text_options(const DataConfig& config);
// The label's column of sequences, which is the first one unless the settings name another.
std::string sequence_label_column(const DataConfig& config);
std::optional<bool> header_of(const DataConfig& config);
// Nothing: as the file's name says.
std::optional<char> separator_of(const DataConfig& config);

}  // namespace cosformer::data
