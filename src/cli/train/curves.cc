#include "cli/train/curves.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/terminal/gnuplot.h"
#include "train/reports/metrics_log.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

struct Curves {
  std::string loss, valid_loss, valid_metric;  // gnuplot's inline data: "step value" lines
  std::string metric;                          // what is judged by: "accuracy, %"
  double factor = 1;                           // from metrics.jsonl to that
  long long last_step = 0;
  bool empty() const { return loss.empty() || valid_metric.empty(); }
};

// What runs are judged by; a run has one of them.
struct Judged {
  const char *name, *title;
  double factor;
};
constexpr Judged kJudged[] = {{"valid_accuracy", "accuracy, %", 100},
                              {"valid_bits_per_byte", "bits per byte", 1},
                              {"valid_masked_accuracy", "masked tokens found, %", 100},
                              {"valid_token_accuracy", "tokens found, %", 100}};

Curves read_curves(const std::string& run) {
  Curves curves;
  train::for_each_metrics(run, [&](std::int64_t step, const nlohmann::json& entry, std::string_view) {
    curves.last_step = step;
    const auto add = [&](std::string& text, const char* name, double factor) {
      if (!entry.contains(name) || !entry[name].is_number()) return;
      std::ostringstream point;
      point << step << ' ' << factor * entry[name].get<double>() << '\n';
      text += point.str();
    };
    add(curves.loss, "loss", 1);
    add(curves.valid_loss, "valid_loss", 1);
    for (const Judged& judged : kJudged) {
      if (entry.contains(judged.name)) {
        curves.metric = judged.title;
        curves.factor = judged.factor;
      }
      add(curves.valid_metric, judged.name, judged.factor);
    }
  });
  return curves;
}

std::string script(const Curves& curves, const std::vector<PlotFloor>& floors, const std::string& name,
                   const std::string& terminal, const std::string& output) {
  std::string text = fmt::format("$loss << EOD\n{}EOD\n$valid_loss << EOD\n{}EOD\n$valid_metric << EOD\n{}EOD\n",
                                 curves.loss, curves.valid_loss, curves.valid_metric);
  text += fmt::format("set terminal {}\nset output {}\n", terminal, gnuplot_quoted(output));
  text += fmt::format("set multiplot layout 1,2 title {} noenhanced\n", gnuplot_quoted(name));
  text += "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n";
  text += gnuplot_step_axis(curves.last_step);
  // Below both panels, where no curve is.
  text += "set key outside below center vertical maxcols 1 Left reverse samplen 2 noenhanced\n";
  text += fmt::format("set bmargin {}\n", 4 + std::max<std::size_t>(2, 1 + floors.size()));
  text += "set offsets 0, 0, graph 0.03, graph 0.03\nset ylabel 'loss'\n";
  text +=
      "plot $loss with lines lw 1.5 lc rgb '#4878a8' title 'training', "
      "$valid_loss with linespoints pt 7 ps 0.5 lw 2 lc rgb '#c44e52' title 'validation'\n";
  text += fmt::format("set ylabel {}\n", gnuplot_quoted(curves.metric));
  text += fmt::format("plot $valid_metric with linespoints pt 7 ps 0.5 lw 2 lc rgb '#c44e52' title 'validation'{}\n",
                      floor_lines(floors, curves.factor));
  return text + "unset multiplot\nunset output\n";
}

}  // namespace

std::string draw_curves(const std::string& run, const std::vector<PlotFloor>& floors) {
  const Curves curves = read_curves(run);
  if (curves.empty()) return "no curves drawn: metrics.jsonl has too few lines yet";
  const std::string name = fs::path(run).lexically_normal().filename().string();
  const std::string svg = (fs::path(run) / "curves.svg").string(), png = (fs::path(run) / "curves.png").string();
  const std::string text =
      fmt::format("set encoding utf8\n{}{}", script(curves, floors, name, "svg size 1000,460 background 'white'", svg),
                  script(curves, floors, name, "pngcairo size 1000,460 background 'white'", png));
  if (!run_gnuplot(text)) return "no curves drawn: is gnuplot installed? (Debian package gnuplot-nox)";
  return fmt::format("curves: {} and .png", svg);
}

}  // namespace cosformer::cli
