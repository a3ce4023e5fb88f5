#include "cli/compare/compare_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cli/compare/compare_language.h"
#include "cli/terminal/progress_line.h"
#include "cli/train/run_difference.h"
#include "data/baselines/floor.h"
#include "data/baselines/recall_floor.h"
#include "data/batches/batch_stream.h"
#include "runs/device.h"
#include "train/inputs/batching.h"
#include "train/jobs/recall_job.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

// A model whose feed-forward part would have to shrink below this share of what was asked for is not the same kind of
// model any more.
constexpr double kLeastFeedForward = 0.25;
constexpr double kMatched = 0.01;

// Letters, digits, dots and underscores stay, all else between them becomes one dash.
std::string as_file_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

std::int64_t parameters_of(models::ModelConfig model) {
  return models::Classifier(model).parameter_count();
}

// The width of the feed-forward part with which the model comes nearest to `wanted` parameters, which are linear in it;
// `with_one_more` are those with one column more.
std::int64_t matched_feed_forward(std::int64_t asked, std::int64_t parameters, std::int64_t with_one_more,
                                  std::int64_t wanted) {
  const auto each = static_cast<double>(with_one_more - parameters);
  const double width = static_cast<double>(asked) + static_cast<double>(wanted - parameters) / each;
  const double least = std::max(1.0, kLeastFeedForward * static_cast<double>(asked));
  return std::llround(std::max(least, width));
}

long long steps_of(const runs::RunConfig& run, const data::TaskData& task, const models::InputConfig& input) {
  if (run.train.steps > 0) return run.train.steps;
  const data::BatchStream stream(task.train, train::batch_options(run.train, input),
                                 static_cast<std::uint64_t>(run.train.seed), {});
  const double an_epoch =
      static_cast<double>(stream.batches_in_first_epoch()) / static_cast<double>(run.train.accumulate);
  return std::max(1LL, std::llround(std::ceil(an_epoch * run.train.epochs)));
}

class TaskPlanner {
 public:
  TaskPlanner(const CompareConfig& config, const ComparedTask& task, std::string folder)
      : config_(config), task_(task), folder_(std::move(folder)), text_(task.name) {}

  std::vector<PlannedCell> cells(ComparePlan& plan) {
    std::vector<PlannedCell> all;
    for (const ComparedModel& model : config_.models) {
      for (std::int64_t seed = config_.first_seed; seed < config_.first_seed + config_.seeds; ++seed) {
        all.push_back(cell(model, seed));
      }
      const CellResult& first = all[all.size() - static_cast<std::size_t>(config_.seeds)].result;
      const double off = reference_ ? static_cast<double>(first.parameters) / static_cast<double>(*reference_) - 1 : 0;
      if (first.state != CellState::kCannot && config_.match_parameters && std::abs(off) > kMatched) {
        plan.notes.push_back(fmt::format(
            "{}, {}: {}% {} parameters than {} although its feed-forward part was adjusted", task_.name, model.name,
            significant(100 * std::abs(off), 2), off > 0 ? "more" : "fewer", config_.models.front().name));
      }
    }
    if (data_) plan.floors.push_back(floors());
    if (recall_floors_) plan.floors.push_back(*recall_floors_);
    if (const std::optional<TaskFloors> of_text = text_.floors()) plan.floors.push_back(*of_text);
    return all;
  }

 private:
  PlannedCell cell(const ComparedModel& model, std::int64_t seed) {
    PlannedCell cell;
    CellResult& r = cell.result;
    r.task = task_.name;
    r.name = model.name;
    r.attention = model.attention;
    r.is_variant = model.is_variant;
    r.seed = seed;
    r.folder = (fs::path(folder_) / "cells" / as_file_name(task_.name + "-" + model.name + "-" + std::to_string(seed)))
                   .string();
    try {
      cell.config = run_config_of(config_, task_, model, seed);
      if (!cell.config.model.pattern.empty()) r.attention = models::label_of(cell.config.model);
      r.is_language = cell.config.data.task == "lm";
      build(cell);
    } catch (const UserError& error) {
      r.state = CellState::kCannot;
      r.reason = error.what();
    }
    return cell;
  }

  void build(PlannedCell& cell) {
    runs::device_of(cell.config.train);
    if (cell.result.is_language) return build_language(cell);
    if (runs::is_recall(cell.config)) return build_recall(cell);
    if (runs::is_language(cell.config) || runs::is_text_to_text(cell.config)) {
      throw UserError(
          fmt::format("models of the task '{}' are not compared here; cosformer eval RUN RUN compares such runs",
                      cell.config.data.task));
    }
    if (!data_) data_ = data::open_task(cell.config.data, progress_line(task_.name, "examples"));
    const models::InputConfig input = runs::input_of(*data_);
    match(cell, [&](const runs::RunConfig& config) {
      models::ModelConfig model = config.model;
      model.input = input;
      return parameters_of(model);
    });
    cell.steps = steps_of(cell.config, *data_, input);
    const runs::TrainConfig& t = cell.config.train;
    cell.work = static_cast<double>(cell.steps * t.accumulate) *
                static_cast<double>(t.token_budget > 0 ? t.token_budget : t.batch_size * input.max_length);
  }

  void build_recall(PlannedCell& cell) {
    match(cell, [&](const runs::RunConfig& config) {
      return models::LanguageModel(train::recall_model_config(config)).parameter_count();
    });
    runs::RunConfig on_cpu = cell.config;
    on_cpu.train.device = "cpu";  // nothing is computed
    const train::RecallJob job(on_cpu);
    const runs::TrainConfig& t = cell.config.train;
    const double an_epoch = static_cast<double>(job.batches_in_first_epoch()) / static_cast<double>(t.accumulate);
    cell.steps = t.steps > 0 ? t.steps : std::max(1LL, std::llround(std::ceil(an_epoch * t.epochs)));
    cell.work = static_cast<double>(cell.steps * t.accumulate) *
                static_cast<double>(train::rows_of_width(t, cell.config.recall.length) * cell.config.recall.length);
    if (!recall_floors_) recall_floors_ = recall_floors(cell.config);
  }

  TaskFloors recall_floors(const runs::RunConfig& config) const {
    TaskFloors result{task_.name, train::describe_recall(config), {}, 0};
    const train::RecallEvaluationOptions o = train::recall_evaluation_options(config, train::Part::kTest, at::kCPU);
    for (const data::Floor& floor : data::recall_floors(config.recall, o.seeds, o.part, o.texts)) {
      result.floors.emplace_back(floor.rule, floor.accuracy);
    }
    return result;
  }

  void build_language(PlannedCell& cell) {
    cell.tokenizer = text_.tokenizer_for(cell.config, cell.result.folder);
    match(cell, [&](const runs::RunConfig& config) { return ComparedText::parameters_of(config, *cell.tokenizer); });
    cell.steps = text_.steps_of(cell.config, cell.tokenizer);
    const runs::TrainConfig& t = cell.config.train;
    cell.work = static_cast<double>(cell.steps * t.accumulate) *
                static_cast<double>(t.batch_size > 0 ? t.batch_size * cell.config.text.window : t.token_budget);
  }

  // Takes the model's size, after its feed-forward part was made to agree with the first model's.
  template <typename Parameters>
  void match(PlannedCell& cell, const Parameters& parameters_with) {
    std::int64_t parameters = parameters_with(cell.config);
    if (!reference_) reference_ = parameters;
    if (config_.match_parameters && parameters != *reference_) {
      runs::RunConfig wider = cell.config;
      ++wider.model.feed_forward;
      cell.config.model.feed_forward =
          matched_feed_forward(cell.config.model.feed_forward, parameters, parameters_with(wider), *reference_);
      parameters = parameters_with(cell.config);
    }
    cell.result.parameters = parameters;
  }

  TaskFloors floors() const {
    TaskFloors result{task_.name, data_->description, {}, 0};
    for (const data::Floor& floor : data::floors(*data_->train, *data_->test)) {
      result.floors.emplace_back(floor.rule, floor.accuracy);
    }
    for (const std::string& note : data_->notes) result.description += "; note: " + note;
    return result;
  }

  const CompareConfig& config_;
  const ComparedTask& task_;
  std::string folder_;
  std::optional<data::TaskData> data_;
  ComparedText text_;
  std::optional<TaskFloors> recall_floors_;
  std::optional<std::int64_t> reference_;  // parameters of the first model that can be
};

void require_unchanged(const PlannedCell& cell) {
  if (cell.result.state == CellState::kCannot || !runs::is_run(cell.result.folder)) return;
  const std::string difference = first_difference(runs::read_run(cell.result.folder), cell.config);
  if (difference.empty()) return;
  throw UserError(
      fmt::format("'{}' was begun with other settings ({}); give the settings of before, or another folder with --out",
                  cell.result.folder, difference));
}

}  // namespace

ComparePlan plan_comparison(const CompareConfig& config, const std::string& folder) {
  ComparePlan plan;
  for (const ComparedTask& task : config.tasks) {
    std::vector<PlannedCell> cells = TaskPlanner(config, task, folder).cells(plan);
    plan.cells.insert(plan.cells.end(), cells.begin(), cells.end());
  }
  std::stable_sort(plan.cells.begin(), plan.cells.end(),
                   [](const PlannedCell& a, const PlannedCell& b) { return a.result.seed < b.result.seed; });
  std::set<std::string> folders;
  for (const PlannedCell& cell : plan.cells) {
    require_unchanged(cell);
    if (!folders.insert(cell.result.folder).second) {
      throw UserError(
          fmt::format("two cells would have the folder '{}'; give them names that differ more", cell.result.folder));
    }
  }
  return plan;
}

}  // namespace cosformer::cli
