// What a trained model is asked about: files, folders or standard input, read as the model's task reads its data.
//
//   text_files, text       one text a line, or TSV, CSV or JSONL with the text's column
//   text_pairs, retrieval  two texts a line with a tab between them, or TSV, CSV or JSONL with both columns
//   text_to_text           one source a line, or TSV, CSV or JSONL with the source's column
//   (text and retrieval also as they are published: TSV without a header)
//   listops                one expression a line, with or without parentheses; its value is its label
//   images                 a PNG file, a folder of them, an IDX file, a CIFAR binary; from standard input one PNG
//   sequences              CSV rows, with the label's column where a header names it, where the first row has a class
//                          there that is no number, or where the options say so
// Labels are kept where there are some, so that the accuracy can be told.
#pragma once

#include <string>
#include <vector>

#include "data/dataset/row_report.h"
#include "data/readers/class_labels.h"
#include "data/tasks/task.h"

namespace cosformer::data {

struct PredictionOptions {
  std::string format =
      "auto";  // of text: auto (by the file's name; lines where that says nothing), lines, tsv, csv, jsonl
  bool skip_bad_rows = false;
  bool labelled = false;  // rows of numbers have the label in the training data's column
};

// A line without an input: blank, or left out because it could not be used.
struct PredictionGap {
  std::size_t before = 0;  // the example that comes next; their number: none does
  std::string name;
};

struct PredictionInput {
  DatasetPointer dataset;           // labels are kNoLabel where there were none; null: there are gaps alone
  std::vector<std::string> names;   // of each example: its line's or record's number, or its file's name
  std::vector<PredictionGap> gaps;  // where inputs are one a line
  std::string note;                 // what the user should know about how it was read
  LoadReport report;
  UnknownLabels unknown;  // rows with labels that are none of the model's; they count as rows without one
};

// Throws UserError for a format or a task that does not exist.
void require_possible(const DataConfig& config, const PredictionOptions& options);

// Whether inputs stand one a line, without a header, so that they can be read as they come (prediction_stream.h).
bool is_by_line(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                const PredictionOptions& options);

// `config` and `info` are those of the training data: the classes, the size of images, the vocabulary and the greatest
// length hold here as well. `path` is "-" for standard input. Throws UserError with the place and the reason.
PredictionInput read_prediction_input(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                                      const PredictionOptions& options = {});

}  // namespace cosformer::data
