// The pictures of a comparison, drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

#include "cli/compare/compare_results.h"

namespace cosformer::cli {

struct Plot {
  std::string title, caption;
  std::string path;  // without ending: .svg and .png are there
};

// Everything there are numbers for, drawn into `folder`, which is made: quality against speed and training curves of
// each task, bars of the variants of each mechanism, time and memory by length. Throws Failure without gnuplot.
std::vector<Plot> draw_plots(const std::vector<CellResult>& cells, const std::vector<TaskFloors>& floors,
                             const std::vector<SpeedPoint>& speed, const std::string& folder);

}  // namespace cosformer::cli
