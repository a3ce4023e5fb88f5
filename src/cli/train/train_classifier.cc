#include "cli/train/train_classifier.h"

#include <cstdio>
#include <optional>

#include "cli/eval/run_report.h"
#include "cli/terminal/progress_line.h"
#include "cli/train/curves.h"
#include "cli/train/train_run.h"
#include "models/layer_pattern.h"
#include "runs/checkpoint.h"
#include "runs/data_record.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/continuation.h"
#include "train/initial_weights.h"
#include "train/jobs/classification_job.h"

namespace cosformer::cli {

void train_classifier(const train::TrainRequest& request) {
  const data::TokenizerPointer tokenizer = runs::tokenizer_for_classifier(request.config, request.run);
  const runs::RunConfig& config = request.config;
  const data::TaskData text =
      data::open_task(tokenizer ? train::uncut(config.data) : config.data, progress_line(config.data.task, "examples"));
  data::TaskData task = tokenizer ? train::tokenized(text, *tokenizer, config.data.max_length) : text;
  std::optional<models::ModelConfig> made;
  if (train::was_continued(request)) {
    made = runs::load_trained_classifier(request.run)->config();
    task = train::fitted_task(task, made->input);
  }
  // What cannot be built is refused before there is a folder.
  train::ClassificationJob job(config, task, tokenizer ? tokenizer->hash() : "", made ? &*made : nullptr);
  if (!config.train.init.empty() && runs::checkpoint_steps(request.run).empty()) {
    train::take_encoder(*runs::load_trained_language_model(config.train.init), job.model());
  }
  if (!runs::is_run(request.run)) runs::create_run(request.run, request.config);
  if (tokenizer) runs::keep_tokenizer(request.run, *tokenizer);
  RunLog log(request.run);
  const runs::DataRecord record = runs::data_record_of(task);
  runs::keep_data_record(request.run, record);
  log.write(task.description);
  log.write(data::describe_classes(record.classes));
  log.write_note(models::note_on_order(config.model));
  for (const std::string& note : task.notes) log.write("note: " + note);
  const train::TrainResult result = run_job(request, job, log);
  const std::vector<data::Floor> floors = data::floors(*text.train, *text.test);
  std::vector<PlotFloor> lines;
  for (const data::Floor& floor : floors) lines.push_back({floor.rule, floor.accuracy});
  log.write(draw_curves(request.run, lines));
  train::Evaluation test;
  test.loss = result.test.at("loss");
  test.accuracy = result.test.at("accuracy");
  const std::vector<EvaluatedRun> runs{{request.run, request.config, test, text.train->info().classes.size()}};
  std::printf("\n%s%s", accuracy_table(runs, floors, text.test->size()).c_str(), advice_for(runs, floors).c_str());
  std::printf("\nnext: cosformer eval %s\n      cosformer predict %s --input FILE\n", request.run.c_str(),
              request.run.c_str());
}

}  // namespace cosformer::cli
