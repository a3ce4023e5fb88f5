#include "cli/eval/recall_plot.h"

#include <array>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/terminal/gnuplot.h"

namespace cosformer::cli {
namespace {

constexpr std::array kColours{"4878a8", "c44e52", "55a868", "8172b3", "ccb974", "64b5cd", "dd8452", "937860"};

std::string panel(const char* axis, const std::string& prefix, const std::vector<RecallCurves>& models,
                  std::vector<RecallPoint> RecallCurves::*points, const std::vector<PlotFloor>& floors) {
  std::string data, lines;
  for (std::size_t number = 0; number < models.size(); ++number) {
    std::string values;
    for (const RecallPoint& point : models[number].*points) {
      values += fmt::format("{} {}\n", point.last, 100 * point.accuracy);
    }
    if (values.empty()) continue;
    const std::string block = fmt::format("{}{}", prefix, number);
    data += gnuplot_data(block, values);
    lines += fmt::format("{}${} with linespoints pt 7 ps 0.6 lw 2 lc rgb '#{}' title {}", lines.empty() ? "" : ", ",
                         block, kColours[number % kColours.size()], gnuplot_quoted(models[number].name));
  }
  if (lines.empty()) return "";
  return fmt::format("{}set xlabel {}\nplot {}{}\n", data, gnuplot_quoted(axis), lines, floor_lines(floors, 100));
}

}  // namespace

std::string recall_panels(const std::vector<RecallCurves>& models, const std::vector<PlotFloor>& floors) {
  return fmt::format(
      "set multiplot layout 1,2\nset logscale x 2\nset yrange [0:102]\nset grid lc rgb '#dddddd'\nset border 3\n"
      "set tics nomirror\nset ylabel 'accuracy, %'\nset key outside below center vertical maxcols 1 Left reverse "
      "samplen 2\nset bmargin {}\n{}{}unset multiplot\n",
      4 + models.size() + floors.size(),
      panel("pairs in the text, at most", "p", models, &RecallCurves::by_pairs, floors),
      panel("tokens from pair to query, at most", "d", models, &RecallCurves::by_distance, floors));
}

std::string draw_recall(const std::string& run, const std::vector<RecallCurves>& models,
                        const std::vector<PlotFloor>& floors) {
  const std::string path = (std::filesystem::path(run) / "recall").string();
  try {
    draw_with_gnuplot(recall_panels(models, floors), path, {1000, 460});
  } catch (const Failure& failure) {
    return std::string("no plot: ") + failure.what();
  }
  return fmt::format("plot: {}.svg and .png", path);
}

}  // namespace cosformer::cli
