#include "cli/compare/compare_recall.h"

#include <algorithm>
#include <utility>

#include "base/table.h"

namespace cosformer::cli {

std::vector<RecallCurves> recall_of_task(const std::vector<CellResult>& cells, const std::string& task) {
  std::vector<std::pair<std::string, std::vector<RecallCurves>>> models;
  for (const CellResult& cell : cells) {
    if (cell.task != task || cell.state != CellState::kFinished || cell.recall.by_pairs.empty()) continue;
    auto found = std::find_if(models.begin(), models.end(), [&](const auto& m) { return m.first == cell.name; });
    if (found == models.end()) found = models.insert(models.end(), {cell.name, {}});
    found->second.push_back(cell.recall);
  }
  std::vector<RecallCurves> means;
  for (const auto& [name, repetitions] : models) means.push_back(mean_of(name, repetitions));
  return means;
}

std::vector<std::vector<std::vector<std::string>>> recall_grids(const std::vector<CellResult>& cells,
                                                                const std::string& task) {
  const std::vector<RecallCurves> models = recall_of_task(cells, task);
  if (models.empty()) return {};
  return {recall_grid(task + " by pairs in the text", models, &RecallCurves::by_pairs),
          recall_grid(task + " by tokens from pair to query", models, &RecallCurves::by_distance)};
}

std::string recall_tables(const std::vector<CellResult>& cells) {
  std::string text;
  std::vector<std::string> tasks;
  for (const CellResult& cell : cells) {
    if (std::find(tasks.begin(), tasks.end(), cell.task) == tasks.end()) tasks.push_back(cell.task);
  }
  for (const std::string& task : tasks) {
    for (const std::vector<std::vector<std::string>>& grid : recall_grids(cells, task)) {
      Table table(grid.front());
      for (std::size_t row = 1; row < grid.size(); ++row) table.add(grid[row]);
      text += '\n' + table.text();
    }
  }
  return text;
}

}  // namespace cosformer::cli
