#include "cli/run_report.h"

#include "base/table.h"
#include "data/floor.h"

namespace cosformer::cli {

std::string accuracy_table(const train::RunConfig& config, const train::Evaluation& test, const data::TaskData& task) {
  const auto percent = [](double share) { return significant(100 * share, 4) + "%"; };
  Table table({"on the test part", "accuracy", "loss"});
  for (const data::Floor& floor : data::floors(*task.train, *task.test)) {
    table.add({"floor: " + floor.rule, percent(floor.accuracy), ""});
  }
  table.add({nn::label_of(config.model.attention), percent(test.accuracy), significant(test.loss, 4)});
  return table.text();
}

}  // namespace cosformer::cli
