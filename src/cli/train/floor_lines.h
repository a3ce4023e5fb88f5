// What rules that understand nothing reach, as level lines of a picture.
#pragma once

#include <string>
#include <vector>

namespace cosformer::cli {

struct PlotFloor {
  std::string rule;
  double value = 0;  // in the unit of what is judged by
};

// What continues a gnuplot "plot …": a line each, in greys told apart by their dashes, its value times `factor`.
std::string floor_lines(const std::vector<PlotFloor>& floors, double factor);

}  // namespace cosformer::cli
