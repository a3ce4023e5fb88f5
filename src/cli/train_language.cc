#include "cli/train_language.h"

#include <cstdio>

#include "base/table.h"
#include "cli/progress_line.h"
#include "cli/train_run.h"
#include "data/lm_floor.h"
#include "train/language_job.h"

namespace cosformer::cli {
namespace {

std::string results_table(const train::TrainResult& result) {
  Table table({"", "validation", "test"});
  for (const auto& [name, value] : result.valid.metrics) {
    table.add({name, significant(value, 5), result.test.metrics.empty() ? "" : significant(result.test.at(name), 5)});
  }
  return table.text();
}

}  // namespace

void train_language(const train::TrainRequest& request) {
  const auto progress = [](const std::string& what) { return progress_line(what, "B"); };
  const data::TokenizerPointer tokenizer = train::tokenizer_for(request.config, request.run, progress);
  const train::LanguageData data = train::open_language_data(request.config, tokenizer, progress);
  train::LanguageJob job(request.config, data);  // what cannot be built is refused before there is a folder
  if (!train::is_run(request.run)) train::create_run(request.run, request.config);
  train::keep_tokenizer(request.run, *tokenizer);
  RunLog log(request.run);
  log.write(data.description);
  for (const std::string& note : data.notes) log.write("note: " + note);
  const train::TrainResult result = run_job(request, job, log);
  const bool autoregressive = request.config.data.task == "lm";
  const std::string generates =
      autoregressive ? "      cosformer generate " + request.run + " --prompt TEXT\n" : std::string();
  std::printf("\n%s\nnext: cosformer eval %s\n%s", results_table(result).c_str(), request.run.c_str(),
              generates.c_str());
}

}  // namespace cosformer::cli
