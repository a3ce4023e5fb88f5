// A picture of what a model recalls: accuracy by the number of pairs in a text, and by distance.
#pragma once

#include <string>
#include <vector>

#include "cli/eval/recall_curves.h"
#include "cli/train/floor_lines.h"

namespace cosformer::cli {

// gnuplot's text of both panels, a line for each model.
std::string recall_panels(const std::vector<RecallCurves>& models, const std::vector<PlotFloor>& floors);

// Draws RUN/recall.svg and .png; returns what to tell the user: where it is, or why there is none.
std::string draw_recall(const std::string& run, const std::vector<RecallCurves>& models,
                        const std::vector<PlotFloor>& floors);

}  // namespace cosformer::cli
