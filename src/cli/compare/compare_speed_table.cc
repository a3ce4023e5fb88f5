// The tables of speed and memory by length.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "base/table.h"
#include "cli/compare/compare_results.h"

namespace cosformer::cli {
namespace {

// Each reason has a letter; after z come aa, ab, …
std::string letter(std::size_t number) {
  std::string text;
  for (std::size_t left = number + 1; left > 0; left = (left - 1) / 26) {
    text.insert(text.begin(), static_cast<char>('a' + (left - 1) % 26));
  }
  return text;
}

// The reasons in the order of the points, one for each model and text.
std::vector<std::pair<std::string, std::string>> reasons(const std::vector<SpeedPoint>& points) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const SpeedPoint& p : points) {
    const std::pair reason{p.name, p.skipped};
    if (!p.skipped.empty() && std::find(found.begin(), found.end(), reason) == found.end()) found.push_back(reason);
  }
  return found;
}

std::string cell_text(const SpeedPoint& p, SpeedQuantity quantity,
                      const std::vector<std::pair<std::string, std::string>>& all_reasons) {
  if (!p.skipped.empty()) {
    const auto found = std::find(all_reasons.begin(), all_reasons.end(), std::pair{p.name, p.skipped});
    return fmt::format("- ({})", letter(static_cast<std::size_t>(found - all_reasons.begin())));
  }
  switch (quantity) {
    case SpeedQuantity::kTraining: return significant(p.train_steps_per_s);
    case SpeedQuantity::kInference: return significant(p.inference_steps_per_s);
    case SpeedQuantity::kMemory: break;
  }
  return human_bytes(p.peak_bytes);
}

}  // namespace

std::vector<std::vector<std::string>> speed_grid(const std::vector<SpeedPoint>& points, SpeedQuantity quantity) {
  std::vector<long long> lengths;
  std::vector<std::string> names;
  for (const SpeedPoint& p : points) {
    if (std::find(lengths.begin(), lengths.end(), p.length) == lengths.end()) lengths.push_back(p.length);
    if (std::find(names.begin(), names.end(), p.name) == names.end()) names.push_back(p.name);
  }
  std::sort(lengths.begin(), lengths.end());
  const auto all_reasons = reasons(points);
  std::vector<std::vector<std::string>> grid(1);
  grid[0].emplace_back("");
  for (const long long length : lengths) grid[0].push_back(with_commas(length));
  for (const std::string& name : names) {
    std::vector<std::string> row(lengths.size() + 1);
    row[0] = name;
    for (const SpeedPoint& p : points) {
      if (p.name != name) continue;
      const auto column = std::find(lengths.begin(), lengths.end(), p.length) - lengths.begin();
      row[static_cast<std::size_t>(column) + 1] = cell_text(p, quantity, all_reasons);
    }
    grid.push_back(std::move(row));
  }
  return grid;
}

std::vector<std::string> explain_skipped(const std::vector<SpeedPoint>& points) {
  std::vector<std::string> lines;
  for (const auto& [name, reason] : reasons(points)) {
    lines.push_back(letter(lines.size()) + ": " + name + ": " + reason);
  }
  return lines;
}

std::string speed_table(const std::vector<SpeedPoint>& points) {
  std::string text;
  for (const auto& [title, quantity] : {std::pair{"training, steps/s", SpeedQuantity::kTraining},
                                        {"inference, steps/s", SpeedQuantity::kInference},
                                        {"peak memory of training", SpeedQuantity::kMemory}}) {
    std::vector<std::vector<std::string>> grid = speed_grid(points, quantity);
    grid[0][0] = title;
    Table table(grid[0]);
    for (std::size_t at = 1; at < grid.size(); ++at) table.add(grid[at]);
    if (!text.empty()) text += '\n';
    text += table.text();
  }
  for (const std::string& line : explain_skipped(points)) text += line + '\n';
  return text;
}

}  // namespace cosformer::cli
