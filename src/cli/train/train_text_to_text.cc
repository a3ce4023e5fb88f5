#include "cli/train/train_text_to_text.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/share.h"
#include "base/table.h"
#include "cli/eval/run_report.h"
#include "cli/terminal/progress_line.h"
#include "cli/train/curves.h"
#include "cli/train/train_run.h"
#include "data/baselines/text_to_text_floor.h"
#include "models/layer_pattern.h"
#include "runs/data_record.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/jobs/text_to_text_job.h"

namespace cosformer::cli {
namespace {

std::string results_table(const train::TrainResult& result, const data::TaskData& task) {
  Table table({"", "validation", "test"});
  for (const data::Floor& floor : data::text_to_text_floors(*task.train, *task.test)) {
    table.add({"floor of exact_match: " + floor.rule, "", significant(floor.accuracy, 5)});
  }
  for (const auto& [name, value] : result.valid.metrics) {
    table.add({name, significant(value, 5), significant(result.test.at(name), 5)});
  }
  return table.text();
}

std::string advice(const std::string& run, const train::TrainResult& result, const data::TaskData& task) {
  const std::vector<data::Floor> floors = data::text_to_text_floors(*task.train, *task.test);
  const auto best = std::max_element(
      floors.begin(), floors.end(), [](const data::Floor& a, const data::Floor& b) { return a.accuracy < b.accuracy; });
  const auto reached = std::find_if(result.test.metrics.begin(), result.test.metrics.end(),
                                    [](const auto& metric) { return metric.first == "exact_match"; });
  if (best == floors.end() || reached == result.test.metrics.end() || reached->second > best->accuracy ||
      reached->second == 1) {
    return "";
  }
  return "\n" + floor_advice(percent(reached->second), best->rule, percent(best->accuracy), training_seen(run));
}

}  // namespace

void train_text_to_text(const train::TrainRequest& request) {
  const auto progress = [](const std::string& what) { return progress_line(what, "B"); };
  std::optional<models::EncoderDecoderConfig> made;
  if (train::was_continued(request)) made = runs::load_trained_encoder_decoder(request.run)->config();
  const train::TextToTextData data =
      made ? train::open_text_to_text_data(request.config, runs::tokenizer_of_run(request.run, made->tokenizer), *made)
           : train::open_text_to_text_data(request.config, request.run, progress);
  train::TextToTextJob job(request.config, data,
                           made ? &*made : nullptr);  // what cannot be built is refused before there is a folder
  if (!runs::is_run(request.run)) runs::create_run(request.run, request.config);
  runs::keep_tokenizer(request.run, *data.tokenizer);
  RunLog log(request.run);
  log.write(data.task.description);
  runs::keep_data_record(request.run, runs::data_record_of(data.task));
  const models::ModelConfig& model = request.config.model;
  log.write_note(models::note_on_order(model));
  for (const std::string& note : data.task.notes) log.write("note: " + note);
  const train::TrainResult result = run_job(request, job, log);
  log.write(draw_curves(request.run, {}));  // the floors are those of whole answers, not of tokens
  std::printf("\n%s%s\nnext: cosformer eval %s\n      cosformer predict %s --input FILE\n",
              results_table(result, data.task).c_str(), advice(request.run, result, data.task).c_str(),
              request.run.c_str(), request.run.c_str());
}

}  // namespace cosformer::cli
