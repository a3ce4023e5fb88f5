#include "cli/compare/compare_report.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/table.h"
#include "cli/compare/compare_recall.h"

namespace cosformer::cli {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string base64(const std::string& bytes) {
  static constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      word = word << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[word >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

using Grid = std::vector<std::vector<std::string>>;

// The first row is the header, the first column names.
std::string table_html(const Grid& grid, const char* kind) {
  std::string html = fmt::format("<table class={}>\n", kind);
  for (std::size_t r = 0; r < grid.size(); ++r) {
    html += "<tr>";
    for (std::size_t c = 0; c < grid[r].size(); ++c) {
      const char* tag = r == 0 || c == 0 ? "th" : "td";
      html += std::string("<") + tag + ">" + escaped(grid[r][c]) + "</" + tag + ">";
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

Grid task_grid(const CompareReport& report, const std::string& task) {
  const std::vector<CompareRow> rows = rows_of(report.cells);
  const bool is_language =
      std::any_of(rows.begin(), rows.end(), [&](const CompareRow& row) { return row.task == task && row.is_language; });
  // Behind the name, where the quality's columns belong.
  const auto with = [](std::vector<std::string> line, const std::vector<std::string>& quality) {
    line.insert(line.begin() + 1, quality.begin(), quality.end());
    return line;
  };
  const std::vector<std::string> none(quality_titles(is_language).size());
  Grid grid{with({"", "seeds", "loss", "train steps/s", "inference steps/s", "peak memory", "parameters", ""},
                 quality_titles(is_language))};
  for (const TaskFloors& of_task : report.floors) {
    if (of_task.task != task) continue;
    for (const auto& [rule, floor] : of_task.floors) {
      const std::string loss = is_language ? significant(floor, 4) : "";
      grid.push_back(with({"floor: " + rule, "", loss, "", "", "", "", ""}, quality_texts(of_task, floor)));
    }
  }
  for (const CompareRow& row : rows) {
    if (row.task != task) continue;
    if (row.accuracy.count == 0) {
      grid.push_back(with({row.name, "", "", "", "", "", "", row.note}, none));
      continue;
    }
    grid.push_back(with({row.name, std::to_string(row.accuracy.count), significant(row.loss.mean, 4),
                         significant(row.train_steps_per_s.mean), significant(row.inference_steps_per_s.mean),
                         human_bytes(row.peak_bytes), with_commas(row.parameters), row.note},
                        quality_texts(row)));
  }
  return grid;
}

std::string tasks_html(const CompareReport& report) {
  std::string html;
  std::vector<std::string> tasks;
  for (const CellResult& cell : report.cells) {
    if (std::find(tasks.begin(), tasks.end(), cell.task) == tasks.end()) tasks.push_back(cell.task);
  }
  for (const std::string& task : tasks) {
    html += "<h2>" + escaped(task) + "</h2>\n";
    for (const TaskFloors& of_task : report.floors) {
      if (of_task.task == task) html += "<p>" + escaped(of_task.description) + "</p>\n";
    }
    html += table_html(task_grid(report, task), "cells");
    for (const Grid& grid : recall_grids(report.cells, task)) html += table_html(grid, "speed");
  }
  const std::string spread = explain_spread(rows_of(report.cells));
  if (!spread.empty()) html += "<p>" + escaped(spread) + "</p>\n";
  return html;
}

std::string speed_html(const CompareReport& report) {
  if (report.speed.empty()) return "";
  std::string html = fmt::format("<h2>Speed and memory by length</h2>\n<p>{}</p>\n", escaped(report.speed_settings));
  for (const auto& [title, quantity] : {std::pair{"training, steps/s", SpeedQuantity::kTraining},
                                        {"inference, steps/s", SpeedQuantity::kInference},
                                        {"peak memory of training", SpeedQuantity::kMemory}}) {
    Grid grid = speed_grid(report.speed, quantity);
    grid[0][0] = title;
    html += table_html(grid, "speed");
  }
  for (const std::string& line : explain_skipped(report.speed))
    html += fmt::format("<p class=note>{}</p>\n", escaped(line));
  return html;
}

std::string plots_html(const CompareReport& report) {
  std::string html;
  for (const Plot& plot : report.plots) {
    // As an image of its own: names inside one drawing do not meet those of another.
    html += fmt::format(
        "<figure><figcaption><b>{}</b><br>{}</figcaption><img alt=\"{}\" "
        "src=\"data:image/svg+xml;base64,{}\"></figure>\n",
        escaped(plot.title), escaped(plot.caption), escaped(plot.title),
        base64(read_regular_file(plot.path + ".svg", kMostBytes, "a picture")));
  }
  return html;
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1160px;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #ddd}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto;font-size:.92em;"
    "font-variant-numeric:tabular-nums}"
    "th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid #eee;white-space:nowrap}"
    "th:first-child{text-align:left;font-weight:normal;white-space:normal}"
    "tr:first-child th{font-weight:600;border-bottom:2px solid #999;white-space:normal;vertical-align:bottom}"
    ".cells td:last-child{text-align:left;white-space:normal;color:#a33}"
    "figure{margin:2em 0}figcaption{margin-bottom:.5em}img{max-width:100%;height:auto}"
    "code{background:#f4f4f4;padding:.15em .4em;overflow-wrap:anywhere}.note{color:#666;margin:.2em 0}";

}  // namespace

std::string report_html(const CompareReport& report) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n<p>Made by "
      "<code>{}</code></p>\n",
      escaped(report.title), kStyle, escaped(report.title), escaped(report.command));
  for (const std::string& note : report.notes) html += fmt::format("<p class=note>note: {}</p>\n", escaped(note));
  html += tasks_html(report) + speed_html(report);
  if (!report.plots.empty()) html += "<h2>Pictures</h2>\n" + plots_html(report);
  return html + "</body>\n</html>\n";
}

}  // namespace cosformer::cli
