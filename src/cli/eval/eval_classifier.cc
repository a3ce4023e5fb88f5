#include "cli/eval/eval_classifier.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/share.h"
#include "cli/eval/class_report.h"
#include "cli/eval/eval_examples.h"
#include "cli/eval/run_report.h"
#include "cli/terminal/progress_line.h"

namespace cosformer::cli {
namespace {

struct Evaluated {
  EvaluatedRun run;
  std::size_t cut = 0;
  std::string about_lengths;
  Confusion confusion;
};

Evaluated evaluate_run(const std::string& folder, const EvalOptions& o, EvaluatedData& data) {
  train::TrainedClassifier model(folder, o.device);
  const train::ReadData read = model.read(data.examples_for(folder, model));
  Evaluated result;
  result.run = {folder, model.config(), {}, model.input().classes.size()};
  result.run.evaluation = model.evaluate(read.dataset, static_cast<std::size_t>(o.batch_size),
                                         progress_line("eval", "examples", read.dataset->size()));
  result.cut = read.cut;
  result.about_lengths = model.about_lengths(read.cut, read.beyond);
  result.confusion = {model.input().classes, result.run.evaluation.confusion};
  return result;
}

void print_json(const EvalOptions& o, const std::vector<Evaluated>& all, const EvaluatedData& data,
                const std::vector<data::Floor>& floors) {
  using nlohmann::ordered_json;
  ordered_json json{{"part", data.is_own() ? ordered_json() : ordered_json(o.part)}};
  if (data.is_own()) {
    json["data"] = o.data_path;
    json["without_label"] = data.unlabelled();
    json["unknown_labels"] = data.unknown().rows;
  }
  if (!data.notes().empty()) json["notes"] = data.notes();
  json["runs"] = ordered_json::array();
  for (const Evaluated& one : all) {
    const train::Evaluation& e = one.run.evaluation;
    const auto examples = static_cast<double>(e.examples);
    ordered_json entry{{"run", one.run.folder},
                       {"attention", models::label_of(one.run.config.model)},
                       {"examples", e.examples},
                       {"accuracy", e.accuracy},
                       {"accuracy_standard_error", standard_error(e.accuracy, examples)},
                       {"loss", e.loss},
                       {"examples_cut", one.cut},
                       {"examples_per_second", examples / e.seconds}};
    entry.update(class_json(one.confusion));
    json["runs"].push_back(std::move(entry));
  }
  for (const data::Floor& floor : floors) json["floors"][floor.rule] = floor.accuracy;
  std::printf("%s\n", json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

void eval_classifier(const EvalOptions& o) {
  EvaluatedData data(o.runs.front(), o.data_path, o.part, o.part_given);
  std::vector<Evaluated> all;
  for (const std::string& folder : o.runs) all.push_back(evaluate_run(folder, o, data));
  const std::vector<data::Floor> floors = data.floors();
  if (o.json) {
    print_json(o, all, data, floors);
    return;
  }
  std::printf("%s:\n", data.description().c_str());
  for (const std::string& note : data.notes()) std::printf("note: %s\n", note.c_str());
  std::vector<EvaluatedRun> runs;
  for (const Evaluated& one : all) {
    runs.push_back(one.run);
    if (!one.about_lengths.empty()) std::printf("%s: %s", one.run.folder.c_str(), one.about_lengths.c_str());
  }
  std::printf("\n%s", accuracy_table(runs, floors, data.size()).c_str());
  if (all.size() == 1) std::printf("\n%s", class_report(all.front().confusion).c_str());
  std::printf("%s", advice_for(runs, floors).c_str());
}

}  // namespace cosformer::cli
