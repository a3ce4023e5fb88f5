// A picture of a run's curves, drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

#include "cli/train/floor_lines.h"

namespace cosformer::cli {

// Draws RUN/curves.svg and RUN/curves.png from RUN/metrics.jsonl, the floors as level lines; returns what to tell the
// user: where it is, or why there is none.
std::string draw_curves(const std::string& run, const std::vector<PlotFloor>& floors);

}  // namespace cosformer::cli
