// What came out of a comparison, as plain numbers: cells, rows over their seeds, tables, JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/eval/recall_curves.h"

namespace cosformer::cli {

enum class CellState { kPlanned, kFinished, kFailed, kCannot };

std::string name_of(CellState state);  // "planned", "finished", "failed", "cannot"

// One training.
struct CellResult {
  std::string task, name, attention, folder;
  bool is_variant = false;  // a mechanism with settings of its own
  long long seed = 0;
  CellState state = CellState::kPlanned;
  std::string reason;  // of a cell that failed or cannot be
  long long parameters = 0;
  double accuracy = 0, loss = 0;  // on the test part
  bool is_language = false;       // a language model: the loss is in nats a token, and there is no accuracy
  double bits_per_byte = 0;       // of a language model
  double test_examples = 0;       // of that part; 0: not known
  double train_steps_per_s = 0, inference_steps_per_s = 0;
  double peak_bytes = 0, seconds = 0;
  RecallCurves recall;  // of the task recall
};

// What trivial rules reach on a task.
struct TaskFloors {
  std::string task, description;
  std::vector<std::pair<std::string, double>> floors;  // rule, accuracy; of a text: nats a token
  double bits_per_nat = 0;  // of a text: bits per byte where the loss is a nat a token; 0: there are accuracies
};

// Of numbers that are repetitions of one thing.
struct Sample {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  // with count − 1; 0 for a single number
};
Sample sample_of(const std::vector<double>& values);

// A model on a task, over its seeds.
struct CompareRow {
  std::string task, name, attention;
  bool is_variant = false;
  std::size_t planned = 0;                                          // seeds
  Sample accuracy, loss, train_steps_per_s, inference_steps_per_s;  // of the finished ones
  double standard_error = 0;                                        // of an accuracy: chance in the choice of examples
  bool is_language = false;
  Sample bits_per_byte, perplexity;  // of language models
  double peak_bytes = 0;             // the greatest
  long long parameters = 0;
  std::string note;  // what did not finish, and why
};

// In the order in which task and name come first.
std::vector<CompareRow> rows_of(const std::vector<CellResult>& cells);

// "43.21 ± 0.52%": the deviation over the seeds, of a single one the standard error, where it is known.
std::string percent_text(const Sample& share, double standard_error = 0);

// What ± means in the rows, in a sentence; empty where none has it.
std::string explain_spread(const std::vector<CompareRow>& rows);

// What rows are compared by, as columns of a table: the accuracy, or bits per byte and perplexity a token.
std::vector<std::string> quality_titles(bool is_language);
std::vector<std::string> quality_texts(const CompareRow& row);
std::vector<std::string> quality_texts(const TaskFloors& task, double floor);

// In one number, for pictures: the accuracy in percent, or bits per byte.
Sample quality_of(const CompareRow& row);
double quality_of(const TaskFloors& task, double floor);

// For a terminal: per task the floors, then the rows.
std::string compare_table(const std::vector<CompareRow>& rows, const std::vector<TaskFloors>& floors);

// Speed and memory of one model at one length.
struct SpeedPoint {
  std::string name, attention;
  long long length = 0;
  double train_steps_per_s = 0, inference_steps_per_s = 0, peak_bytes = 0;
  long long parameters = 0;
  std::string skipped;  // why there are no numbers, or empty
};

enum class SpeedQuantity { kTraining, kInference, kMemory };

// A model a line, a length a column; what was not measured has a letter that explain_skipped() tells.
std::vector<std::vector<std::string>> speed_grid(const std::vector<SpeedPoint>& points, SpeedQuantity quantity);
std::vector<std::string> explain_skipped(const std::vector<SpeedPoint>& points);  // "a: softmax at 65,536: needs …"
std::string speed_table(const std::vector<SpeedPoint>& points);                   // the three, for a terminal

nlohmann::ordered_json to_json(const std::vector<CellResult>& cells, const std::vector<TaskFloors>& floors,
                               const std::vector<SpeedPoint>& speed);

}  // namespace cosformer::cli
