#include "cli/eval/run_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/json_text.h"
#include "base/progress.h"
#include "base/share.h"
#include "base/table.h"
#include "runs/result_file.h"
#include "train/reports/metrics_log.h"
#include "train/reports/run_progress.h"

namespace cosformer::cli {
namespace {

// The mechanism, and the folder where it alone does not tell the runs apart.
std::string name_of(const EvaluatedRun& run, const std::vector<EvaluatedRun>& runs) {
  const std::string label = models::label_of(run.config.model);
  const auto same = std::count_if(runs.begin(), runs.end(), [&](const EvaluatedRun& other) {
    return models::label_of(other.config.model) == label;
  });
  return same > 1 ? label + ", " + run.folder : label;
}

}  // namespace

std::string accuracy_table(const std::vector<EvaluatedRun>& runs, const std::vector<data::Floor>& floors,
                           std::size_t examples) {
  Table table({"", "accuracy", "loss", "parameters", "trained in", "tokens/s", "peak of tensors", "peak resident"});
  const auto accuracy = [&](double share) {
    return percent(share, standard_error(share, static_cast<double>(examples)));
  };
  for (const data::Floor& floor : floors) {
    table.add({"floor: " + floor.rule, accuracy(floor.accuracy), "", "", "", "", "", ""});
  }
  for (const EvaluatedRun& run : runs) {
    std::vector<std::string> row{
        name_of(run, runs), accuracy(run.evaluation.accuracy), significant(run.evaluation.loss, 4), "", "", "", "", ""};
    if (const auto result = runs::read_result_summary(run.folder)) {
      row[3] = with_commas(result->parameters);
      row[4] = human_seconds(result->seconds);
      row[5] = with_commas(std::llround(result->tokens_per_second));
      row[6] = human_bytes(result->peak_memory);
      // Runs of before do not say it.
      if (result->peak_resident > 0) row[7] = human_bytes(result->peak_resident);
    }
    table.add(row);
  }
  return fmt::format("{}± is the standard error of a share of {} examples\n", table.text(),
                     with_commas(static_cast<long long>(examples)));
}

TrainingSeen training_seen(const std::string& run) {
  TrainingSeen seen;
  const auto number = [](const nlohmann::json& entry, const char* key) {
    return entry.contains(key) ? std::optional(json_number(entry, key, 0, "metrics.jsonl")) : std::nullopt;
  };
  try {
    train::for_each_metrics(run, [&](std::int64_t, const nlohmann::json& entry, std::string_view) {
      if (const auto loss = number(entry, "loss")) seen.train_loss = loss;
      if (const auto loss = number(entry, "valid_loss")) seen.valid_loss = loss;
    });
    if (const std::optional<train::RunProgress> progress = train::progress_of(run)) {
      seen.steps = progress->step;
      seen.best_step = progress->best_step;
    }
  } catch (const UserError&) {  // advice is no reason to fail
  }
  return seen;
}

std::string advice_for(const std::vector<EvaluatedRun>& runs, const std::vector<data::Floor>& floors) {
  const auto best = std::max_element(
      floors.begin(), floors.end(), [](const data::Floor& a, const data::Floor& b) { return a.accuracy < b.accuracy; });
  std::string text;
  for (const EvaluatedRun& run : runs) {
    const double accuracy = run.evaluation.accuracy;
    if (best == floors.end() || accuracy > best->accuracy || accuracy == 1) continue;
    TrainingSeen seen = training_seen(run.folder);
    seen.lr = run.config.train.lr;
    seen.guessing_loss = std::log(static_cast<double>(std::max<std::size_t>(run.classes, 1)));
    const std::string& task = run.config.data.task;
    seen.reads_text = task == "text_files" || task == "text_pairs" || task == "text";
    seen.has_initial_weights = !run.config.train.init.empty();
    seen.is_plain = run.config.model.attention.name == "cosformer" && run.config.model.pattern.empty();
    text += "\n" + (runs.size() > 1 ? run.folder + ": " : std::string()) +
            floor_advice(percent(run.evaluation.accuracy), best->rule, percent(best->accuracy), seen);
  }
  return text;
}

}  // namespace cosformer::cli
