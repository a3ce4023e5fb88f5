// What classifiers are evaluated on: a part of the data of their training, which must be as it was then, or labelled
// data of the user's own, all of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/baselines/floor.h"
#include "data/readers/class_labels.h"
#include "data/tasks/task.h"
#include "train/jobs/trained_classifier.h"

namespace cosformer::cli {

class EvaluatedData {
 public:
  // `run` decides what the data are; `path`: where they are now, or other data; empty: where they were. `part_given`:
  // the part was asked for, which data of the user's own do not have. Throws UserError where the data are neither what
  // `run` was trained on nor named by `path`.
  EvaluatedData(const std::string& run, const std::string& path, const std::string& part, bool part_given);

  bool is_own() const { return own_ != nullptr; }
  // For `one`, whose folder is `run`: texts as bytes. Throws UserError when it was trained on the same data as these
  // before they changed, or on data of another kind.
  data::DatasetPointer examples_for(const std::string& run, const train::TrainedClassifier& one);
  std::size_t size() const;
  const data::UnknownLabels& unknown() const { return unknown_; }
  std::size_t unlabelled() const { return unlabelled_; }

  std::string description() const;         // a line or two
  std::vector<std::string> notes() const;  // what one should know before believing a number
  std::vector<data::Floor> floors();

 private:
  // The task's data, cut by the settings or not.
  const data::TaskData& opened(bool uncut);
  std::string data_name(const std::string& run, const runs::RunConfig& config);
  void open_own(const std::string& part);
  data::DatasetPointer own_rows();
  data::DatasetPointer own_parts(const std::string& part);
  void require_unchanged(const std::string& run, const runs::RunConfig& config);

  std::string run_, part_, own_path_;
  runs::RunConfig config_;    // of `run`, with the path that is used
  std::string trained_path_;  // as the run has it
  std::map<bool, data::TaskData> opened_;
  data::DatasetPointer own_;
  data::UnknownLabels unknown_;
  std::size_t unlabelled_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace cosformer::cli
