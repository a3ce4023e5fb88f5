#include "cli/eval/eval_recall.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/share.h"
#include "base/table.h"
#include "cli/eval/recall_plot.h"
#include "cli/eval/run_report.h"
#include "cli/terminal/progress_line.h"
#include "data/baselines/recall_floor.h"
#include "runs/device.h"
#include "runs/run_bundle.h"
#include "runs/trained_models.h"
#include "train/jobs/recall_job.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;
using train::RecallEvaluation;
using train::RecallRange;

struct Evaluated {
  std::string folder, label;
  RecallEvaluation evaluation;
};

// The first run's texts, read as `folder`'s settings of the training say.
train::RecallEvaluationOptions options_for(const EvalOptions& o, const runs::RunConfig& texts,
                                           const runs::RunConfig& own) {
  const train::Part part = o.part == "train"   ? train::Part::kTrain
                           : o.part == "valid" ? train::Part::kValid
                                               : train::Part::kTest;
  runs::RunConfig config = texts;
  config.train = own.train;
  config.train.device = o.device;
  config.train.seed = texts.train.seed;  // the training part's texts follow from it
  if (o.batch_size > 0) config.train.eval_batch_size = o.batch_size;
  return train::recall_evaluation_options(config, part, runs::device_of(config.train));
}

void require_readable(const runs::RunConfig& texts, const runs::RunConfig& own, const EvalOptions& o,
                      const std::string& folder) {
  const data::RecallConfig &a = texts.recall, &b = own.recall;
  if (a.fillers == b.fillers && a.keys == b.keys && a.values == b.values && a.length <= b.length) return;
  throw UserError(fmt::format(
      "'{}' cannot read the texts of '{}': it was trained on {} fillers, {} keys, {} values and up to {} "
      "tokens, and they have {}, {}, {} and {}; evaluate it by itself",
      folder, o.runs.front(), b.fillers, b.keys, b.values, b.length, a.fillers, a.keys, a.values, a.length));
}

Evaluated evaluate_run(const EvalOptions& o, const runs::RunConfig& texts, const std::string& folder) {
  const runs::RunConfig config = runs::read_run(folder);
  if (!runs::is_recall(config)) {
    throw UserError(fmt::format("'{}' is no recall model; compare runs of one kind", folder));
  }
  require_readable(texts, config, o, folder);
  train::RecallEvaluationOptions options = options_for(o, texts, config);
  const auto model = runs::load_trained_recall_model(folder);
  model->to(options.device);
  options.progress = progress_line("eval", "texts", options.texts);
  return {folder, models::label_of(model->config().model), train::evaluate_recall(*model, texts.recall, options)};
}

// Queries of one text stand and fall together: each text counts once.
double error_of(const RecallEvaluation& e) {
  return standard_error(e.accuracy(), static_cast<double>(e.texts));
}

std::vector<RecallPoint> points_of(const std::vector<RecallRange>& ranges) {
  std::vector<RecallPoint> points;
  for (const RecallRange& range : ranges) points.push_back({range.first, range.last, range.accuracy()});
  return points;
}

// A range a row, a run a column; all runs were asked the same queries.
std::string ranges_table(const char* title, const std::vector<Evaluated>& runs,
                         std::vector<RecallRange> RecallEvaluation::*ranges) {
  std::vector<std::string> header{title, "queries"};
  for (const Evaluated& run : runs) header.push_back(run.label);
  Table table(header);
  const std::vector<RecallRange>& first = runs.front().evaluation.*ranges;
  for (std::size_t at = 0; at < first.size(); ++at) {
    std::vector<std::string> row{range_text(first[at].first, first[at].last),
                                 with_commas(static_cast<long long>(first[at].queries))};
    for (const Evaluated& run : runs) row.push_back(percent((run.evaluation.*ranges)[at].accuracy()));
    table.add(row);
  }
  return table.text();
}

void print_tables(const EvalOptions& o, const runs::RunConfig& texts, const std::vector<data::Floor>& floors,
                  const std::vector<Evaluated>& runs) {
  const RecallEvaluation& first = runs.front().evaluation;
  const auto number = [](std::uint64_t value) { return with_commas(static_cast<long long>(value)); };
  std::printf("%s part: %s texts, %s queries; %s\n\n", o.part.c_str(), number(first.texts).c_str(),
              number(first.queries).c_str(), data::describe(texts.recall).c_str());
  Table table({"", "accuracy", "loss", "tokens/s"});
  for (const data::Floor& floor : floors) table.add({"floor: " + floor.rule, percent(floor.accuracy), "", ""});
  for (const Evaluated& run : runs) {
    const RecallEvaluation& e = run.evaluation;
    const double tokens = static_cast<double>(e.texts) * static_cast<double>(texts.recall.length);
    table.add({run.label, percent(e.accuracy(), error_of(e)), significant(e.loss(), 4),
               with_commas(std::llround(tokens / std::max(e.seconds, 1e-9)))});
  }
  std::printf("%s± is the standard error of a share of %s texts\n\n%s\n%s", table.text().c_str(),
              number(first.texts).c_str(), ranges_table("pairs in the text", runs, &RecallEvaluation::by_pairs).c_str(),
              ranges_table("tokens from pair to query", runs, &RecallEvaluation::by_distance).c_str());
}

void print_plot_and_advice(const EvalOptions& o, const std::vector<data::Floor>& floors,
                           const std::vector<Evaluated>& runs) {
  std::vector<PlotFloor> lines;
  for (const data::Floor& floor : floors) lines.push_back({floor.rule, floor.accuracy});
  std::vector<RecallCurves> curves;
  for (const Evaluated& run : runs) {
    curves.push_back({run.label, points_of(run.evaluation.by_pairs), points_of(run.evaluation.by_distance)});
  }
  const std::string& folder = o.runs.front();
  if (!runs::is_file(folder)) std::printf("%s\n", draw_recall(folder, curves, lines).c_str());
  const auto best = std::max_element(
      floors.begin(), floors.end(), [](const data::Floor& a, const data::Floor& b) { return a.accuracy < b.accuracy; });
  for (const Evaluated& run : runs) {
    if (run.evaluation.accuracy() > best->accuracy || run.evaluation.accuracy() == 1) continue;
    std::printf(
        "\n%s: %s", run.folder.c_str(),
        floor_advice(percent(run.evaluation.accuracy()), best->rule, percent(best->accuracy), training_seen(run.folder))
            .c_str());
  }
}

ordered_json ranges_json(const std::vector<RecallRange>& ranges) {
  ordered_json list = ordered_json::array();
  for (const RecallRange& range : ranges) {
    list.push_back(
        {{"first", range.first}, {"last", range.last}, {"queries", range.queries}, {"accuracy", range.accuracy()}});
  }
  return list;
}

void print_json(const EvalOptions& o, const std::vector<data::Floor>& floors, const std::vector<Evaluated>& runs) {
  ordered_json json{{"part", o.part}, {"floors", ordered_json::object()}, {"runs", ordered_json::array()}};
  for (const data::Floor& floor : floors) json["floors"][floor.rule] = floor.accuracy;
  for (const Evaluated& run : runs) {
    const RecallEvaluation& e = run.evaluation;
    json["runs"].push_back({{"run", run.folder},
                            {"attention", run.label},
                            {"accuracy", e.accuracy()},
                            {"accuracy_standard_error", error_of(e)},
                            {"loss", e.loss()},
                            {"texts", e.texts},
                            {"queries", e.queries},
                            {"by_pairs", ranges_json(e.by_pairs)},
                            {"by_distance", ranges_json(e.by_distance)}});
  }
  std::printf("%s\n", json.dump(1).c_str());
}

}  // namespace

void eval_recall(const EvalOptions& o) {
  const runs::RunConfig texts = runs::read_run(o.runs.front());
  std::vector<Evaluated> runs;
  for (const std::string& folder : o.runs) runs.push_back(evaluate_run(o, texts, folder));
  const train::RecallEvaluationOptions options = options_for(o, texts, texts);
  const std::vector<data::Floor> floors = data::recall_floors(texts.recall, options.seeds, options.part, options.texts);
  if (o.json) {
    print_json(o, floors, runs);
    return;
  }
  print_tables(o, texts, floors, runs);
  print_plot_and_advice(o, floors, runs);
}

}  // namespace cosformer::cli
