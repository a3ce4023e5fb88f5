#include "cli/eval/recall_curves.h"

#include <algorithm>
#include <string_view>

#include "base/parse_number.h"
#include "base/share.h"
#include "base/table.h"

namespace cosformer::cli {
namespace {

bool is_same_range(const RecallPoint& a, const RecallPoint& b) {
  return a.first == b.first && a.last == b.last;
}

// Of "test_accuracy_pairs_3_4" behind the prefix "test_accuracy_pairs_"; whether it is one.
bool parse_range(std::string_view text, RecallPoint& point) {
  const std::size_t line = text.find('_');
  return line != std::string_view::npos && parse_number(std::string(text.substr(0, line)), point.first) &&
         parse_number(std::string(text.substr(line + 1)), point.last);
}

std::vector<RecallPoint> points_of(const nlohmann::ordered_json& result, const std::string& prefix) {
  std::vector<RecallPoint> points;
  for (const auto& [key, value] : result.items()) {
    RecallPoint point;
    if (!key.starts_with(prefix) || !value.is_number()) continue;
    if (!parse_range(std::string_view(key).substr(prefix.size()), point)) continue;
    point.accuracy = value.get<double>();
    points.push_back(point);
  }
  return points;
}

std::vector<RecallPoint> mean_of(const std::vector<RecallCurves>& repetitions,
                                 std::vector<RecallPoint> RecallCurves::*points) {
  std::vector<RecallPoint> means;
  for (RecallPoint mean : repetitions.front().*points) {
    double sum = 0;
    std::size_t count = 0;
    for (const RecallCurves& one : repetitions) {
      for (const RecallPoint& point : one.*points) {
        if (!is_same_range(point, mean)) continue;
        sum += point.accuracy;
        ++count;
      }
    }
    mean.accuracy = sum / static_cast<double>(repetitions.size());
    if (count == repetitions.size()) means.push_back(mean);
  }
  return means;
}

}  // namespace

std::string range_text(std::int64_t first, std::int64_t last) {
  return first == last ? with_commas(first) : with_commas(first) + "-" + with_commas(last);
}

RecallCurves recall_curves_of(const nlohmann::ordered_json& result) {
  return {"", points_of(result, "test_accuracy_pairs_"), points_of(result, "test_accuracy_distance_")};
}

RecallCurves mean_of(const std::string& name, const std::vector<RecallCurves>& repetitions) {
  if (repetitions.empty()) return {name, {}, {}};
  return {name, mean_of(repetitions, &RecallCurves::by_pairs), mean_of(repetitions, &RecallCurves::by_distance)};
}

std::vector<std::vector<std::string>> recall_grid(const std::string& title, const std::vector<RecallCurves>& models,
                                                  std::vector<RecallPoint> RecallCurves::*points) {
  std::vector<RecallPoint> ranges;  // of all models, rising
  for (const RecallCurves& model : models) {
    for (const RecallPoint& point : model.*points) {
      const bool is_new = std::none_of(ranges.begin(), ranges.end(),
                                       [&](const RecallPoint& range) { return is_same_range(range, point); });
      if (is_new) ranges.push_back(point);
    }
  }
  if (ranges.empty()) return {};
  std::sort(ranges.begin(), ranges.end(), [](const RecallPoint& a, const RecallPoint& b) { return a.last < b.last; });
  std::vector<std::vector<std::string>> grid{{title}};
  for (const RecallPoint& range : ranges) grid.front().push_back(range_text(range.first, range.last));
  for (const RecallCurves& model : models) {
    std::vector<std::string> row{model.name};
    for (const RecallPoint& range : ranges) {
      const auto found = std::find_if((model.*points).begin(), (model.*points).end(),
                                      [&](const RecallPoint& point) { return is_same_range(range, point); });
      row.push_back(found == (model.*points).end() ? "" : percent(found->accuracy));
    }
    grid.push_back(row);
  }
  return grid;
}

nlohmann::ordered_json to_json(const std::vector<RecallPoint>& points) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RecallPoint& point : points) {
    list.push_back({{"first", point.first}, {"last", point.last}, {"accuracy", point.accuracy}});
  }
  return list;
}

}  // namespace cosformer::cli
