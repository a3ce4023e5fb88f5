#include "cli/train/floor_lines.h"

#include <sstream>

#include "cli/terminal/gnuplot.h"

namespace cosformer::cli {

std::string floor_lines(const std::vector<PlotFloor>& floors, double factor) {
  std::ostringstream text;
  int dashes = 2;  // 1 is a line without gaps
  for (const PlotFloor& floor : floors) {
    text << ", " << factor * floor.value << " with lines lw 1.5 dt " << dashes++ << " lc rgb '#777777' title "
         << gnuplot_quoted("floor: " + floor.rule);
  }
  return text.str();
}

}  // namespace cosformer::cli
