#include "cli/train/train_recall.h"

#include <algorithm>
#include <cstdio>

#include "base/share.h"
#include "base/table.h"
#include "cli/eval/run_report.h"
#include "cli/train/curves.h"
#include "cli/train/train_run.h"
#include "data/baselines/recall_floor.h"
#include "nn/positions/token_order_note.h"
#include "runs/data_record.h"
#include "runs/device.h"
#include "train/jobs/recall_job.h"

namespace cosformer::cli {
namespace {

std::vector<data::Floor> floors_of(const runs::RunConfig& config) {
  const train::RecallEvaluationOptions o = train::recall_evaluation_options(config, train::Part::kTest, at::kCPU);
  return data::recall_floors(config.recall, o.seeds, o.part, o.texts);
}

std::string results_table(const train::TrainResult& result, const std::vector<data::Floor>& floors) {
  Table table({"", "validation", "test"});
  for (const data::Floor& floor : floors) {
    table.add({"floor of accuracy: " + floor.rule, "", significant(floor.accuracy, 5)});
  }
  for (const char* name : {"loss", "accuracy"}) {  // the curves are eval's
    table.add({name, significant(result.valid.at(name), 5), significant(result.test.at(name), 5)});
  }
  return table.text();
}

std::string advice(const std::string& run, const train::TrainResult& result, const std::vector<data::Floor>& floors) {
  const auto best = std::max_element(
      floors.begin(), floors.end(), [](const data::Floor& a, const data::Floor& b) { return a.accuracy < b.accuracy; });
  const double reached = result.test.at("accuracy");
  if (reached > best->accuracy || reached == 1) return "";
  return "\n" + floor_advice(percent(reached), best->rule, percent(best->accuracy), training_seen(run));
}

}  // namespace

void train_recall(const train::TrainRequest& request) {
  train::RecallJob job(request.config);  // what cannot be built is refused before there is a folder
  if (!runs::is_run(request.run)) runs::create_run(request.run, request.config);
  RunLog log(request.run);
  const std::string description = train::describe_recall(request.config);
  log.write(description);
  runs::keep_data_record(request.run, {description, {}, {}});
  const models::ModelConfig& model = request.config.model;
  log.write_note(nn::note_on_order(model.attention, model.positions, model.causal));
  const train::TrainResult result = run_job(request, job, log);
  const std::vector<data::Floor> floors = floors_of(request.config);
  std::vector<PlotFloor> lines;
  for (const data::Floor& floor : floors) lines.push_back({floor.rule, floor.accuracy});
  log.write(draw_curves(request.run, lines));
  std::printf("\n%s%s\nnext: cosformer eval %s\n", results_table(result, floors).c_str(),
              advice(request.run, result, floors).c_str(), request.run.c_str());
}

}  // namespace cosformer::cli
