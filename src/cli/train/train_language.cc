#include "cli/train/train_language.h"

#include <cmath>
#include <cstdio>

#include <fmt/core.h>

#include "base/table.h"
#include "cli/terminal/progress_line.h"
#include "cli/train/curves.h"
#include "cli/train/train_run.h"
#include "data/baselines/lm_floor.h"
#include "models/layer_pattern.h"
#include "runs/run_tokenizer.h"
#include "train/jobs/language_job.h"

namespace cosformer::cli {
namespace {

// What counting tokens reaches, in bits per byte of the test part; of the validation part where there is no other.
std::vector<PlotFloor> floors_of(const data::Corpus& corpus) {
  const data::CorpusPart& part = corpus.test.tokens() > 0 ? corpus.test : corpus.valid;
  std::vector<PlotFloor> floors;
  for (const data::LmFloor& floor : data::lm_floors(corpus.train, part, *corpus.tokenizer)) {
    floors.push_back({floor.rule, floor.nats / std::log(2.0) / static_cast<double>(part.counts().bytes)});
  }
  return floors;
}

std::string results_table(const train::TrainResult& result, const std::vector<PlotFloor>& floors) {
  Table table({"", "validation", "test"});
  const bool has_test = !result.test.metrics.empty();
  for (const PlotFloor& floor : floors) {
    const std::string value = significant(floor.value, 5);
    table.add({"floor of bits_per_byte: " + floor.rule, has_test ? "" : value, has_test ? value : ""});
  }
  for (const auto& [name, value] : result.valid.metrics) {
    table.add({name, significant(value, 5), has_test ? significant(result.test.at(name), 5) : ""});
  }
  return table.text();
}

}  // namespace

void train_language(const train::TrainRequest& request) {
  const auto progress = [](const std::string& what) { return progress_line(what, "B"); };
  const data::TokenizerPointer tokenizer = train::tokenizer_for(request.config, request.run, progress);
  const train::LanguageData data = train::open_language_data(request.config, tokenizer, progress);
  train::LanguageJob job(request.config, data);  // what cannot be built is refused before there is a folder
  if (!runs::is_run(request.run)) runs::create_run(request.run, request.config);
  runs::keep_tokenizer(request.run, *tokenizer);
  RunLog log(request.run);
  log.write(data.description);
  const models::ModelConfig& model = request.config.model;
  log.write_note(models::note_on_order(model));
  for (const std::string& note : data.notes) log.write("note: " + note);
  const train::TrainResult result = run_job(request, job, log);
  const bool autoregressive = request.config.data.task == "lm";
  const std::vector<PlotFloor> floors = autoregressive ? floors_of(data.corpus) : std::vector<PlotFloor>{};
  log.write(draw_curves(request.run, floors));
  const std::string generates =
      autoregressive ? fmt::format("      cosformer generate {} --prompt TEXT\n", request.run) : std::string();
  std::printf("\n%s\nnext: cosformer eval %s\n%s", results_table(result, floors).c_str(), request.run.c_str(),
              generates.c_str());
}

}  // namespace cosformer::cli
