#include "cli/compare/compare_plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/compare/compare_recall.h"
#include "cli/eval/recall_plot.h"
#include "cli/terminal/gnuplot.h"
#include "train/reports/metrics_log.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 16> kColours{"c44e52", "4878a8", "55a868", "8172b3", "ccb974", "64b5cd",
                                               "dd8452", "937860", "da8bc3", "5a5a5a", "1b9e77", "1f3a93",
                                               "e7298a", "66a61e", "000000", "b8860b"};
constexpr const char* kFrame =
    "set grid lt 1 lw 0.7 lc rgb '#e0e0e0'\nset border 3\nset tics nomirror\n"
    "set key outside right top vertical reverse Left samplen 2\n";

// With the same colour and point for a model in every picture.
class Look {
 public:
  void add(const std::string& name) { numbers_.emplace(name, numbers_.size()); }
  std::string colour(const std::string& name, const char* transparency = "") const {
    return std::string("'#") + transparency + kColours[numbers_.at(name) % kColours.size()] + "'";
  }
  std::string point(const std::string& name) const {
    static constexpr std::array<int, 7> kPoints{7, 5, 9, 11, 13, 6, 4};
    return std::to_string(kPoints[numbers_.at(name) % kPoints.size()]);
  }

 private:
  std::map<std::string, std::size_t> numbers_;
};

std::string joined_with_commas(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", \\\n  ") + part;
  return text;
}

std::string block_name(std::size_t number) {
  std::string name = "p";
  name += std::to_string(number);
  return name;
}

// Name → a file's: what is not a letter or digit becomes a dash.
std::string stem_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; }, '-');
  return text;
}

// In the unit of quality_of(); below 0: none. Of bits per byte the least is the best.
double best_floor(const std::vector<TaskFloors>& floors, const std::string& task) {
  double best = -1;
  for (const TaskFloors& of_task : floors) {
    if (of_task.task != task) continue;
    for (const auto& [rule, floor] : of_task.floors) {
      const double quality = quality_of(of_task, floor);
      best = best < 0 ? quality : of_task.bits_per_nat > 0 ? std::min(best, quality) : std::max(best, quality);
    }
  }
  return best;
}

std::string floor_line(double floor) {
  if (floor < 0) return "";
  std::ostringstream text;
  text << floor << " with lines lw 2 dt 2 lc rgb '#888888' title 'floor'";
  return text.str();
}

constexpr std::size_t kCurvePoints = 30;  // more make a thicket of sixteen lines

class Drawing {
 public:
  Drawing(const std::vector<CellResult>& cells, const std::vector<TaskFloors>& floors,
          const std::vector<SpeedPoint>& speed, std::string folder)
      : cells_(cells), rows_(rows_of(cells)), floors_(floors), speed_(speed), folder_(std::move(folder)) {
    for (const CellResult& cell : cells) look_.add(cell.name);
    for (const SpeedPoint& point : speed) look_.add(point.name);
  }

  std::vector<Plot> all() {
    std::vector<std::string> tasks;
    for (const CompareRow& row : rows_) {
      if (row.accuracy.count > 0 && std::find(tasks.begin(), tasks.end(), row.task) == tasks.end()) {
        tasks.push_back(row.task);
      }
    }
    for (const std::string& task : tasks) quality_against_speed(task);
    for (const std::string& task : tasks) recall(task);
    for (const std::string& task : tasks) variants(task);
    by_length("time-training", "Time of a training step by length", "milliseconds",
              [](const SpeedPoint& p) { return 1e3 / p.train_steps_per_s; });
    by_length("time-inference", "Time of inference by length", "milliseconds",
              [](const SpeedPoint& p) { return 1e3 / p.inference_steps_per_s; });
    by_length("memory", "Memory of training by length", "megabytes",
              [](const SpeedPoint& p) { return p.peak_bytes / 1e6; });
    for (const std::string& task : tasks) {
      const double floor = best_floor(floors_, task);
      if (is_language(task)) {
        curves(task, "valid_bits_per_byte", 1, "validation bits per byte", floor);
      } else {
        curves(task, "valid_accuracy", 100, "validation accuracy, %", floor);
      }
      curves(task, "loss", 1, "training loss", -1);
    }
    return plots_;
  }

 private:
  bool is_language(const std::string& task) const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [&](const CompareRow& row) { return row.task == task && row.is_language; });
  }
  std::string quality_label(const std::string& task) const {
    return is_language(task) ? "test bits per byte" : "test accuracy, %";
  }

  void draw(const std::string& name, const std::string& title, const std::string& caption, const std::string& body,
            const GnuplotSize& size = {}) {
    const std::string path = (fs::path(folder_) / stem_of(name)).string();
    draw_with_gnuplot(body, path, size);
    plots_.push_back({title, caption, path});
  }

  void quality_against_speed(const std::string& task) {
    double most = 0, fastest = 0, slowest = 1e300;
    for (const CompareRow& row : rows_) {
      if (row.task != task || row.accuracy.count == 0) continue;
      most = std::max(most, row.peak_bytes);
      fastest = std::max(fastest, row.train_steps_per_s.mean);
      slowest = std::min(slowest, row.train_steps_per_s.mean);
    }
    std::string data, labels;
    std::vector<std::string> parts;
    std::size_t number = 0;
    for (const CompareRow& row : rows_) {
      if (row.task != task || row.accuracy.count == 0) continue;
      ++number;
      // The area is the memory; the smallest circle can still be seen.
      const double size = std::max(1.2, 9 * std::sqrt(row.peak_bytes / std::max(most, 1.0)));
      std::ostringstream line, label;
      const Sample quality = quality_of(row);
      line << row.train_steps_per_s.mean << ' ' << quality.mean << ' ' << size << ' ' << quality.deviation << '\n';
      label << row.train_steps_per_s.mean << ' ' << quality.mean << ' ' << number << '\n';
      const std::string block = block_name(number);
      data += gnuplot_data(block, line.str());
      labels += label.str();
      parts.push_back(fmt::format("${} using 1:2:3 with points pt 7 ps variable lc rgb {} title {}", block,
                                  look_.colour(row.name, "70"),
                                  gnuplot_quoted(std::to_string(number) + "  " + row.name)));
      if (row.accuracy.deviation > 0) {
        parts.push_back(fmt::format("${} using 1:($2-$4):(0):(2*$4) with vectors nohead lw 1.5 lc rgb {} notitle",
                                    block, look_.colour(row.name)));
      }
    }
    const std::string floor = floor_line(best_floor(floors_, task));
    if (!floor.empty()) parts.push_back(floor);
    parts.emplace_back("$labels using 1:2:3 with labels font ',10' notitle");
    std::ostringstream range;
    range << "set xrange [" << slowest / 1.4 << ":" << fastest * 1.3 << "]\n";
    draw(task + "-quality-speed", task + ": quality against speed",
         fmt::format("{} (mean over seeds, with its deviation) against training steps a second; a circle's area is the "
                     "peak memory of training. {} and to the right is better, smaller is better.",
                     std::string(is_language(task) ? "Bits per byte of the test text" : "Test accuracy"),
                     is_language(task) ? "Down" : "Up"),
         fmt::format("{}{}{}{}{}set offsets graph 0, graph 0, graph 0.08, graph 0.08\nset xlabel 'training "
                     "steps/s'\nset ylabel {}\nplot {}\n",
                     data, gnuplot_data("labels", labels), kFrame, fastest > 4 * slowest ? "set logscale x 2\n" : "",
                     range.str(), gnuplot_quoted(quality_label(task)), joined_with_commas(parts)),
         {900, 520});
  }

  void recall(const std::string& task) {
    const std::vector<RecallCurves> models = recall_of_task(cells_, task);
    if (models.empty()) return;
    std::vector<PlotFloor> lines;
    for (const TaskFloors& of_task : floors_) {
      if (of_task.task != task) continue;
      for (const auto& [rule, floor] : of_task.floors) lines.push_back({rule, floor});
    }
    draw(task + "-recall", task + ": accuracy by pairs and by distance",
         "Accuracy on the test part, mean over seeds: texts by their number of pairs, queries by their distance from "
         "the pair; each point stands for all from the one before it on.",
         recall_panels(models, lines), {1000, 520});
  }

  void variants(const std::string& task) {
    std::vector<std::string> mechanisms;
    for (const CompareRow& row : rows_) {
      if (row.task == task && row.is_variant && row.accuracy.count > 0 &&
          std::find(mechanisms.begin(), mechanisms.end(), row.attention) == mechanisms.end()) {
        mechanisms.push_back(row.attention);
      }
    }
    for (const std::string& mechanism : mechanisms) bars(task, mechanism);
  }

  void bars(const std::string& task, const std::string& mechanism) {
    std::string data, tics;
    double most = 0;
    int number = 0;
    for (const CompareRow& row : rows_) {
      if (row.task != task || row.attention != mechanism || row.accuracy.count == 0) continue;
      std::ostringstream line, tic;
      const Sample quality = quality_of(row);
      line << number << ' ' << quality.mean << ' ' << quality.deviation << '\n';
      data += line.str();
      tic << (number > 0 ? ", " : "") << gnuplot_quoted(row.name) << ' ' << number;
      tics += tic.str();
      most = std::max(most, quality.mean + quality.deviation);
      ++number;
    }
    if (number < 2) return;  // one bar compares nothing
    std::ostringstream ranges;
    ranges << "set xrange [-0.7:" << number - 0.3 << "]\nset yrange [0:" << most * 1.12 << "]\n";
    const std::string floor = floor_line(best_floor(floors_, task));
    draw(task + "-variants-" + mechanism, fmt::format("{}: variants of {}", task, mechanism),
         std::string(is_language(task) ? "Bits per byte of the test text" : "Test accuracy") +
             ", mean over seeds with its deviation.",
         fmt::format("{}{}{}set xtics rotate by -25 ({})\nset ylabel {}\nset boxwidth 0.7\nset style fill solid "
                     "0.75\nset bmargin 7\nplot $bars using 1:2:3 with boxerrorbars lw 1.2 lc rgb '#4878a8' notitle, "
                     "$bars using 1:($2+$3):(sprintf('{}', $2)) with labels offset 0,0.7 notitle{}\n",
                     gnuplot_data("bars", data), kFrame, ranges.str(), tics, gnuplot_quoted(quality_label(task)),
                     is_language(task) ? "%.3f" : "%.1f", floor.empty() ? "" : ", " + floor));
  }

  template <typename Value>
  void by_length(const std::string& name, const std::string& title, const char* unit, const Value& value) {
    std::map<std::string, std::string> lines;
    std::vector<std::string> order;
    for (const SpeedPoint& p : speed_) {
      if (!p.skipped.empty()) continue;
      if (lines.find(p.name) == lines.end()) order.push_back(p.name);
      std::ostringstream line;
      line << p.length << ' ' << value(p) << '\n';
      lines[p.name] += line.str();
    }
    if (order.empty()) return;
    std::string data;
    std::vector<std::string> parts;
    for (const std::string& model : order) {
      const std::string block = block_name(parts.size());
      data += gnuplot_data(block, lines[model]);
      parts.push_back(fmt::format("${} with linespoints lw 2 ps 0.9 pt {} lc rgb {} title {}", block,
                                  look_.point(model), look_.colour(model), gnuplot_quoted(model)));
    }
    draw(name, title,
         "Both axes logarithmic: what is linear in the length rises with slope one, what is quadratic with slope two. "
         "A line ends where the model could not go on; the table says why.",
         fmt::format("{}{}set logscale xy\n{}set xlabel 'tokens'\nset ylabel {}\nplot {}\n", data, kFrame,
                     length_tics(), gnuplot_quoted(unit), joined_with_commas(parts)));
  }

  // The measured lengths themselves: "1K" for 1,024.
  std::string length_tics() const {
    std::set<long long> lengths;
    for (const SpeedPoint& p : speed_) lengths.insert(p.length);
    std::string tics;
    for (const long long length : lengths) {
      const std::string label = length % 1024 == 0 ? std::to_string(length / 1024) + "K" : std::to_string(length);
      if (!tics.empty()) tics += ", ";
      tics += gnuplot_quoted(label) + " " + std::to_string(length);
    }
    std::ostringstream text;
    text << "set xtics (" << tics << ")\nset xrange [" << 0.9 * static_cast<double>(*lengths.begin()) << ":"
         << 1.1 * static_cast<double>(*lengths.rbegin()) << "]\n";
    return text.str();
  }

  struct Mean {
    double sum = 0;
    int count = 0;
  };
  using Curve = std::map<long long, Mean>;  // by step

  // `floor`: below 0 there is none of that quantity.
  void curves(const std::string& task, const std::string& quantity, double factor, const std::string& label,
              double floor) {
    std::vector<std::pair<std::string, Curve>> named;  // over all seeds, in the cells' order
    for (const CellResult& cell : cells_) {
      if (cell.task != task || cell.state != CellState::kFinished) continue;
      auto at = std::find_if(named.begin(), named.end(), [&](const auto& c) { return c.first == cell.name; });
      if (at == named.end()) at = named.insert(named.end(), {cell.name, {}});
      add_curve(cell.folder, quantity, factor, at->second);
    }
    std::string data;
    std::vector<std::string> parts;
    for (const auto& [name, curve] : named) {
      if (curve.empty()) continue;
      const std::string block = block_name(parts.size());
      data += gnuplot_data(block, lines_of(curve));
      parts.push_back(fmt::format("${} with linespoints lw 1.5 ps 0.6 pt {} lc rgb {} title {}", block,
                                  look_.point(name), look_.colour(name), gnuplot_quoted(name)));
    }
    if (parts.empty()) return;
    long long last = 0;
    for (const auto& [name, curve] : named) last = curve.empty() ? last : std::max(last, curve.rbegin()->first);
    if (floor >= 0) parts.push_back(floor_line(floor));
    draw(task + "-" + quantity, task + ": " + label,
         fmt::format("The mean over seeds; where a curve has more than {} points, each is the mean over a stretch of "
                     "the training.",
                     kCurvePoints),
         fmt::format("{}{}{}set ylabel {}\nplot {}\n", data, kFrame, gnuplot_step_axis(last), gnuplot_quoted(label),
                     joined_with_commas(parts)));
  }

  static void add_curve(const std::string& run, const std::string& quantity, double factor, Curve& curve) {
    train::for_each_metrics(run, [&](std::int64_t step, const nlohmann::json& entry, std::string_view) {
      if (!entry.contains(quantity) || !entry[quantity].is_number()) return;
      Mean& mean = curve[step];
      mean.sum += factor * entry[quantity].get<double>();
      ++mean.count;
    });
  }

  static std::string lines_of(const Curve& curve) {
    const std::size_t together = (curve.size() + kCurvePoints - 1) / kCurvePoints;
    std::ostringstream lines;
    Mean value, step;
    std::size_t at = 0;
    for (const auto& [number, mean] : curve) {
      value.sum += mean.sum;
      value.count += mean.count;
      step.sum += static_cast<double>(number);
      ++step.count;
      if (++at % together == 0 || at == curve.size()) {
        lines << step.sum / step.count << ' ' << value.sum / value.count << '\n';
        value = step = {};
      }
    }
    return lines.str();
  }

  const std::vector<CellResult>& cells_;
  std::vector<CompareRow> rows_;
  const std::vector<TaskFloors>& floors_;
  const std::vector<SpeedPoint>& speed_;
  std::string folder_;
  Look look_;
  std::vector<Plot> plots_;
};

}  // namespace

std::vector<Plot> draw_plots(const std::vector<CellResult>& cells, const std::vector<TaskFloors>& floors,
                             const std::vector<SpeedPoint>& speed, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw file_failure("make the folder", folder, error.value());
  return Drawing(cells, floors, speed, folder).all();
}

}  // namespace cosformer::cli
