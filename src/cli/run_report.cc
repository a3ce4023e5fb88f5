#include "cli/run_report.h"

#include <algorithm>
#include <cmath>

#include "base/progress.h"
#include "base/table.h"
#include "train/result_file.h"

namespace cosformer::cli {
namespace {

std::string percent(double share) {
  return significant(100 * share, 4) + "%";
}

// The mechanism, and the folder where it alone does not tell the runs apart.
std::string name_of(const EvaluatedRun& run, const std::vector<EvaluatedRun>& runs) {
  const std::string label = models::label_of(run.config.model);
  const auto same = std::count_if(runs.begin(), runs.end(), [&](const EvaluatedRun& other) {
    return models::label_of(other.config.model) == label;
  });
  return same > 1 ? label + ", " + run.folder : label;
}

}  // namespace

std::string accuracy_table(const std::vector<EvaluatedRun>& runs, const std::vector<data::Floor>& floors) {
  Table table({"", "accuracy", "loss", "parameters", "trained in", "tokens/s", "peak of tensors", "peak resident"});
  for (const data::Floor& floor : floors) {
    table.add({"floor: " + floor.rule, percent(floor.accuracy), "", "", "", "", "", ""});
  }
  for (const EvaluatedRun& run : runs) {
    std::vector<std::string> row{
        name_of(run, runs), percent(run.evaluation.accuracy), significant(run.evaluation.loss, 4), "", "", "", "", ""};
    if (const auto result = train::read_result_summary(run.folder)) {
      row[3] = with_commas(result->parameters);
      row[4] = human_seconds(result->seconds);
      row[5] = with_commas(std::llround(result->tokens_per_second));
      row[6] = human_bytes(result->peak_memory);
      // Runs of before do not say it.
      if (result->peak_resident > 0) row[7] = human_bytes(result->peak_resident);
    }
    table.add(row);
  }
  return table.text();
}

}  // namespace cosformer::cli
