#include "cli/bench/context_plot.h"

#include <cmath>
#include <filesystem>
#include <sstream>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/terminal/gnuplot.h"

namespace cosformer::cli {

std::string draw_contexts(const std::string& run, const std::string& title,
                          const std::vector<train::ContextRange>& ranges, const std::vector<PlotFloor>& floors) {
  std::ostringstream points;  // in the middle of each range, on the scale of the axis, which has no place for 0
  for (const train::ContextRange& range : ranges) {
    if (range.first == 0) continue;
    points << std::sqrt(static_cast<double>(range.first) * static_cast<double>(range.last)) << ' '
           << range.nats / static_cast<double>(range.tokens) / std::log(2.0) << '\n';
  }
  const std::string lines = floor_lines(floors, 1 / std::log(2.0));
  const std::string path = (std::filesystem::path(run) / "context").string();
  try {
    draw_with_gnuplot(
        fmt::format("{}set title {}\nset logscale x 2\nset grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset "
                    "xlabel 'tokens read before'\nset ylabel 'bits per token'\nset offsets 0, 0, graph 0.03, graph "
                    "0.03\nset key outside below center vertical maxcols 1 Left reverse samplen 2\nplot $loss with "
                    "linespoints pt 7 ps 0.6 lw 2 lc rgb '#4878a8' title 'the model'{}",
                    gnuplot_data("loss", points.str()), gnuplot_quoted(title), lines),
        path, {700, 460});
  } catch (const Failure& failure) {
    return std::string("no plot: ") + failure.what();
  }
  return fmt::format("plot: {}.svg and .png", path);
}

}  // namespace cosformer::cli
