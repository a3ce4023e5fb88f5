// Running the cells of a comparison, each as `cosformer train` in a process of its own.
#pragma once

#include <functional>

#include "cli/compare/compare_plan.h"

namespace cosformer::cli {

// Cells that have finished are kept, those that were begun go on, the others begin; a cell that fails does not stop the
// rest. Fills in the results; a line for each cell goes to `say`. Throws Interrupted on Ctrl-C, after the running cell
// has saved its work.
void run_cells(std::vector<PlannedCell>& cells, const std::function<void(const std::string& line)>& say);

}  // namespace cosformer::cli
