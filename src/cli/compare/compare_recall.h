// The cells of a comparison that are of the task recall: what their models recall, as tables.
#pragma once

#include <string>
#include <vector>

#include "cli/compare/compare_results.h"

namespace cosformer::cli {

// Of a task's models that have finished, each as the mean over its seeds; empty for other tasks.
std::vector<RecallCurves> recall_of_task(const std::vector<CellResult>& cells, const std::string& task);

// By pairs and by distance, with titles; none for other tasks.
std::vector<std::vector<std::vector<std::string>>> recall_grids(const std::vector<CellResult>& cells,
                                                                const std::string& task);

// The same of all tasks, for a terminal.
std::string recall_tables(const std::vector<CellResult>& cells);

}  // namespace cosformer::cli
