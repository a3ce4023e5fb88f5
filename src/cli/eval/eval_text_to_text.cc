#include "cli/eval/eval_text_to_text.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/share.h"
#include "base/table.h"
#include "cli/eval/run_report.h"
#include "cli/terminal/progress_line.h"
#include "data/baselines/text_to_text_floor.h"
#include "data/dataset/fingerprint.h"
#include "data/dataset/joined.h"
#include "runs/device.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_data.h"
#include "runs/trained_models.h"
#include "train/inputs/batching.h"
#include "train/inputs/text_to_text_data.h"
#include "train/jobs/text_to_text_evaluation.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;

struct Evaluated {
  std::string folder, label;
  train::TextToTextEvaluation evaluation;
  std::vector<data::Floor> floors;
  bool own = false;  // data of the user's own, all of them
};

// The part that is asked for, of data that are those of the training; of others, all of them.
data::DatasetPointer examples_of(const EvalOptions& o, const std::string& folder, const data::TaskData& task,
                                 bool& own) {
  const runs::SameData same = runs::is_trained_on(folder, data::fingerprint(task));
  own = same == runs::SameData::kNo && !o.data_path.empty();
  if (own && o.part_given) {
    throw UserError(
        fmt::format("'{}' does not hold the data that '{}' was trained on, and so has no parts: leave --part out to "
                    "evaluate all of it",
                    o.data_path, folder));
  }
  if (own) return data::joined({task.train, task.valid, task.test});
  if (same == runs::SameData::kNo && folder == o.runs.front()) {
    throw UserError(
        fmt::format("the data are not those that '{}' was trained on: they have changed since. What is held out is "
                    "drawn from what is there, so that examples of the training would be tested. Put back what was "
                    "there, or evaluate pairs that it has not seen: cosformer eval {} --data FILE",
                    folder, folder));
  }
  if (same != runs::SameData::kYes) {
    std::fprintf(stderr, "note: nothing says that '%s' was trained on these data; it may have seen what is tested\n",
                 folder.c_str());
  }
  return o.part == "test" ? task.test : o.part == "valid" ? task.valid : task.train;
}

Evaluated evaluate_run(const EvalOptions& o, const std::string& folder) {
  runs::RunConfig config = runs::read_run(folder);
  if (!runs::is_text_to_text(config)) {
    throw UserError(fmt::format("'{}' is no text-to-text model; compare runs of one kind", folder));
  }
  config.train.device = o.device;
  config.data = runs::read_run(o.runs.front()).data;  // all are judged by the same texts
  if (o.data_path.empty()) {
    runs::require_data_there(o.runs.front(), config);
  } else {
    config.data.path = o.data_path;
  }
  const auto model = runs::load_trained_encoder_decoder(folder);
  const at::Device device = runs::device_of(config.train);
  model->to(device);
  const train::TextToTextData data =
      train::open_text_to_text_data(config, runs::tokenizer_of_run(folder, model->config().tokenizer), model->config());
  Evaluated result;
  const data::DatasetPointer part = examples_of(o, folder, data.task, result.own);
  train::EvaluationOptions options =
      train::evaluation_options(config.train, train::text_input(model->config()), device);
  if (o.batch_size > 0) options.batches.batch_size = static_cast<std::size_t>(o.batch_size);
  const data::DatasetPointer written = o.write > 0 ? train::written_examples(part, o.write) : part;
  const std::size_t work = part->size() + (o.write > 0 ? written->size() : 0);
  result.folder = folder;
  result.label = models::label_of(model->config());
  result.evaluation = train::evaluate_text_to_text(*model, part, *data.tokenizer, o.write, options,
                                                   progress_line("eval", "examples", work));
  result.floors = data::text_to_text_floors(*data.task.train, *written);
  return result;
}

double error_of(const train::TextToTextEvaluation& e) {
  return standard_error(e.exact_match(), static_cast<double>(e.written));
}

void print_table(const EvalOptions& o, const std::vector<Evaluated>& runs) {
  const train::TextToTextEvaluation& first = runs.front().evaluation;
  const auto number = [](std::uint64_t value) { return with_commas(static_cast<long long>(value)); };
  const std::string what = runs.front().own ? fmt::format("all of '{}'", o.data_path) : o.part + " part";
  std::printf("%s: %s examples, %s tokens to write; %s answers written\n\n", what.c_str(),
              number(first.examples).c_str(), number(first.tokens).c_str(), number(first.written).c_str());
  Table table({"", "exact match", "loss", "perplexity", "tokens found"});
  for (const data::Floor& floor : runs.front().floors) {
    table.add({"floor: " + floor.rule,
               percent(floor.accuracy, standard_error(floor.accuracy, static_cast<double>(first.written))), "", "",
               ""});
  }
  for (const Evaluated& run : runs) {
    const train::TextToTextEvaluation& e = run.evaluation;
    table.add({run.label, e.written > 0 ? percent(e.exact_match(), error_of(e)) : "", significant(e.loss(), 5),
               significant(e.perplexity(), 5), percent(e.token_accuracy())});
  }
  std::printf("%s± is the standard error of a share of %s answers\n", table.text().c_str(),
              number(first.written).c_str());
  for (const Evaluated& run : runs) {
    const auto best =
        std::max_element(run.floors.begin(), run.floors.end(),
                         [](const data::Floor& a, const data::Floor& b) { return a.accuracy < b.accuracy; });
    if (run.evaluation.written == 0 || best == run.floors.end() || run.evaluation.exact_match() > best->accuracy ||
        run.evaluation.exact_match() == 1)
      continue;
    std::printf("\n%s", floor_advice(percent(run.evaluation.exact_match()), best->rule, percent(best->accuracy),
                                     training_seen(run.folder))
                            .c_str());
  }
}

void print_json(const EvalOptions& o, const std::vector<Evaluated>& runs) {
  const bool own = runs.front().own;
  ordered_json json{{"part", own ? ordered_json() : ordered_json(o.part)},
                    {"floors", ordered_json::object()},
                    {"runs", ordered_json::array()}};
  if (own) json["data"] = o.data_path;
  for (const data::Floor& floor : runs.front().floors) json["floors"][floor.rule] = floor.accuracy;
  for (const Evaluated& run : runs) {
    ordered_json entry{{"run", run.folder}, {"attention", run.label}};
    const train::PartResult result = train::part_result(run.evaluation);
    for (const auto& [name, value] : result.metrics) entry[name] = value;
    for (const auto& [name, value] : result.amounts) entry[name] = value;
    if (run.evaluation.written > 0) entry["exact_match_standard_error"] = error_of(run.evaluation);
    json["runs"].push_back(entry);
  }
  std::printf("%s\n", json.dump(1).c_str());
}

}  // namespace

void eval_text_to_text(const EvalOptions& o) {
  std::vector<Evaluated> runs;
  for (const std::string& folder : o.runs) runs.push_back(evaluate_run(o, folder));
  if (o.json) {
    print_json(o, runs);
  } else {
    print_table(o, runs);
  }
}

}  // namespace cosformer::cli
