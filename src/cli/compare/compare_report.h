// The report of a comparison: one HTML file with everything in it, readable without a network.
#pragma once

#include <string>
#include <vector>

#include "cli/compare/compare_plots.h"

namespace cosformer::cli {

struct CompareReport {
  std::string title, command;      // the command that made it
  std::vector<std::string> notes;  // what one should know before believing a number
  std::vector<CellResult> cells;
  std::vector<TaskFloors> floors;
  std::vector<SpeedPoint> speed;
  std::string speed_settings;  // in words: model, batch, machine
  std::vector<Plot> plots;
};

// Throws Failure when a plot's file cannot be read.
std::string report_html(const CompareReport& report);

}  // namespace cosformer::cli
