#include "cli/eval/eval_examples.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cli/dataset_info.h"
#include "cli/terminal/progress_line.h"
#include "data/dataset/fingerprint.h"
#include "data/dataset/joined.h"
#include "data/readers/file_content.h"
#include "data/readers/unlabelled/prediction_input.h"
#include "data/tasks/task_parts.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_data.h"
#include "train/initial_weights.h"

namespace cosformer::cli {
namespace {

data::DatasetPointer part_of(const data::TaskData& task, const std::string& name) {
  return name == "test" ? task.test : name == "valid" ? task.valid : task.train;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + data::excerpt(name);
  return text;
}

// The first setting of data in which they differ; empty when none does.
std::string difference(data::DataConfig there, data::DataConfig here) {
  Settings left, right;
  data::add_settings(left, there);
  data::add_settings(right, here);
  const auto x = left.descriptions(), y = right.descriptions();
  for (std::size_t at = 0; at < x.size(); ++at) {
    if (x[at].value != y[at].value) return fmt::format("{} = {} there, {} here", x[at].key, x[at].value, y[at].value);
  }
  return "";
}

std::string number(std::uint64_t value) {
  return with_commas(static_cast<long long>(value));
}

}  // namespace

EvaluatedData::EvaluatedData(const std::string& run, const std::string& path, const std::string& part, bool part_given)
    : run_(run), part_(part), config_(runs::read_run(run)), trained_path_(config_.data.path) {
  if (path.empty()) {
    runs::require_data_there(run, config_);
    require_unchanged(run, config_);
    return;
  }
  config_.data.path = path;
  try {
    if (runs::is_trained_on(run, data_name(run, config_)) == runs::SameData::kYes) return;  // they have moved
  } catch (const UserError&) {  // it need not be all that a training needs
  }
  opened_.clear();
  if (part_given && !data::is_folder(path)) {
    throw UserError(
        fmt::format("'{}' does not hold the data that '{}' was trained on, and so has no parts: leave --part out to "
                    "evaluate all of it",
                    path, run));
  }
  own_path_ = path;
  open_own(part);
}

const data::TaskData& EvaluatedData::opened(bool uncut) {
  const auto found = opened_.find(uncut);
  if (found != opened_.end()) return found->second;
  const data::DataConfig data = uncut ? train::uncut(config_.data) : config_.data;
  return opened_.emplace(uncut, data::open_task(data, progress_line(data.task, "examples"))).first->second;
}

std::string EvaluatedData::data_name(const std::string& run, const runs::RunConfig& config) {
  const data::TokenizerPointer tokenizer = runs::tokenizer_of_classifier(run);
  const data::TaskData& task = opened(tokenizer != nullptr);
  return data::fingerprint(tokenizer ? train::tokenized(task, *tokenizer, config.data.max_length) : task);
}

void EvaluatedData::require_unchanged(const std::string& run, const runs::RunConfig& config) {
  switch (runs::is_trained_on(run, data_name(run, config))) {
    case runs::SameData::kYes: return;
    case runs::SameData::kUnknown:
      notes_.push_back(fmt::format(
          "'{}' does not say which data it was trained on, so that nobody can tell whether these are the same", run));
      return;
    case runs::SameData::kNo: break;
  }
  throw UserError(
      fmt::format("the data are not those that '{}' was trained on: {} changed since. What is held out is drawn from "
                  "what is there, so that examples of the training would be tested. Put back what was there, or "
                  "evaluate labelled data that it has not seen: cosformer eval {} --data FILE",
                  run, config.data.path.empty() ? "they have" : fmt::format("'{}' has", config.data.path), run));
}

// Rows of a file, by the classes and columns of the training; null where they have no label.
data::DatasetPointer EvaluatedData::own_rows() {
  const train::TrainedClassifier model(run_, "cpu");
  data::DatasetInfo info = dataset_info_of(model.input(), config_.data.task);
  if (model.has_tokenizer()) {
    info.vocabulary = data::kByteVocabulary;
    info.max_length = 0;
  }
  data::PredictionOptions options;
  options.format = config_.data.format;
  options.skip_bad_rows = config_.data.skip_bad_rows;
  options.labelled = true;
  data::DataConfig reading = model.reading();
  reading.path = config_.data.path;
  data::PredictionInput input = data::read_prediction_input(config_.data.path, reading, info, options);
  if (input.report.rows_skipped > 0) notes_.push_back(number(input.report.rows_skipped) + " bad rows were left out");
  unknown_ = input.unknown;
  std::vector<std::size_t> labelled;
  for (std::size_t i = 0; i < input.dataset->size(); ++i) {
    if (input.dataset->label(i) != data::kNoLabel) labelled.push_back(i);
  }
  unlabelled_ = input.dataset->size() - labelled.size() - unknown_.rows;
  if (labelled.empty() && unknown_.rows > 0) {
    throw UserError(fmt::format("no row of '{}' has a label that the model knows: they are {}, and it knows {}",
                                config_.data.path, listed(unknown_.names), listed(info.classes)));
  }
  return labelled.empty() ? nullptr : data::select_examples(input.dataset, std::move(labelled));
}

// All of it as the task reads its data; of the published tasks, whose test part is a file of its own, the part.
data::DatasetPointer EvaluatedData::own_parts(const std::string& part) {
  const bool has_parts = data::task_kind(config_.data.task).usual_path != nullptr;
  data::DataConfig data = config_.data;
  if (data::is_folder(data.path) && runs::tokenizer_of_classifier(run_)) data = train::uncut(data);
  if (!has_parts) {
    for (std::string* other :
         {&data.valid_path, &data.test_path, &data.labels_path, &data.valid_labels_path, &data.test_labels_path}) {
      other->clear();
    }
  }
  data.train_limit = data.valid_limit = data.test_limit = 0;
  const data::TaskData task = data::open_task(data, progress_line(data.task, "examples"));
  const train::TrainedClassifier model(run_, "cpu");
  if (task.train->info().classes != model.input().classes) {
    throw UserError(fmt::format("'{}' holds other classes than '{}' was trained on: {}; expected {}", data.path, run_,
                                listed(task.train->info().classes), listed(model.input().classes)));
  }
  notes_.insert(notes_.end(), task.notes.begin(), task.notes.end());
  return has_parts ? part_of(task, part) : data::joined({task.train, task.valid, task.test});
}

void EvaluatedData::open_own(const std::string& part) {
  const std::string& path = config_.data.path;
  if (!data::is_folder(path)) own_ = own_rows();
  if (!own_) {
    try {
      own_ = own_parts(part);
    } catch (const UserError& error) {
      if (data::is_folder(path)) throw;
      throw UserError(
          fmt::format("no row of '{}' has a label, without which nothing can be evaluated ({}). Give a table with the "
                      "columns of the training data, or ask for predictions: cosformer predict {} --input {}",
                      path, error.what(), run_, path));
    }
  }
  std::error_code unknown;
  if (std::filesystem::equivalent(path, trained_path_, unknown)) {
    notes_.push_back(fmt::format(
        "this is the file that '{}' was trained on, changed since: examples of its training are among these", run_));
  }
}

data::DatasetPointer EvaluatedData::examples_for(const std::string& run, const train::TrainedClassifier& one) {
  const models::InputConfig& trained = one.input();
  if (own_) {
    const data::DatasetInfo& info = own_->info();
    if (trained.classes != info.classes || trained.pairs != info.pairs || trained.image_width != info.width ||
        trained.image_height != info.height) {
      throw UserError(fmt::format("'{}' was trained on other classes or another kind of data than '{}'", run, run_));
    }
    return own_;
  }
  if (run != run_) {
    runs::RunConfig other = one.config();
    if (!config_.data.path.empty()) other.data.path = config_.data.path;
    const std::string differs =
        one.config().data.path != trained_path_
            ? fmt::format("data.path = \"{}\" there, \"{}\" here", one.config().data.path, trained_path_)
            : difference(other.data, config_.data);
    if (differs.empty()) {
      require_unchanged(run, other);
    } else {
      notes_.push_back(fmt::format(
          "'{}' has other settings of data ({}): examples of this part may be among those that it was trained on", run,
          differs));
    }
  }
  const data::TaskData& task = opened(one.has_tokenizer());
  models::InputConfig input = runs::input_of(task);
  if (one.has_tokenizer()) input.vocabulary = trained.vocabulary;
  if (input.classes != trained.classes || input.vocabulary != trained.vocabulary || input.pairs != trained.pairs) {
    throw UserError(fmt::format("'{}' was trained on other data than these ({}): classes or vocabulary differ", run,
                                task.description));
  }
  return part_of(task, part_);
}

std::size_t EvaluatedData::size() const {
  return own_ ? own_->size() : part_of(opened_.begin()->second, part_)->size();
}

std::string EvaluatedData::description() const {
  if (!own_) {
    return fmt::format("{}\n{} part, {} examples", opened_.begin()->second.description, part_, number(size()));
  }
  std::string left_out;
  if (unlabelled_ > 0) left_out += fmt::format("; left out are {} without a label", number(unlabelled_));
  if (unknown_.rows > 0) {
    left_out += fmt::format("{}{} with labels that the model does not know ({})",
                            std::string(left_out.empty() ? "; left out are " : " and "), number(unknown_.rows),
                            listed(unknown_.names));
  }
  return fmt::format("'{}', other data than those of the training: {} labelled examples{}", own_path_, number(size()),
                     left_out);
}

std::vector<std::string> EvaluatedData::notes() const {
  std::vector<std::string> all = notes_;
  if (!own_) {
    const std::vector<std::string>& of_task = opened_.begin()->second.notes;
    all.insert(all.begin(), of_task.begin(), of_task.end());
  }
  return all;
}

std::vector<data::Floor> EvaluatedData::floors() {
  if (!own_) {
    const data::TaskData& task = opened_.begin()->second;
    return data::floors(*task.train, *part_of(task, part_));
  }
  config_.data.path = trained_path_;
  try {
    runs::require_data_there(run_, config_);
    if (runs::is_trained_on(run_, data_name(run_, config_)) == runs::SameData::kYes) {
      return data::floors(*opened_.begin()->second.train, *own_);
    }
  } catch (const UserError&) {  // without what it was trained on, the rules have nothing to learn from
  }
  notes_.push_back("the data of the training are not there as they were: the rules that learn from them are left out");
  std::vector<std::uint64_t> counts(own_->info().classes.size());
  for (std::size_t i = 0; i < own_->size(); ++i) ++counts.at(static_cast<std::size_t>(own_->label(i)));
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  return {{"most frequent class of these", most / static_cast<double>(own_->size())}};
}

}  // namespace cosformer::cli
