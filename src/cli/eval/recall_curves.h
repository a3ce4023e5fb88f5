// What models recall, as plain numbers: accuracy by the number of pairs in a text, and by distance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cosformer::cli {

struct RecallPoint {
  std::int64_t first = 0, last = 0;  // of the range
  double accuracy = 0;
};

struct RecallCurves {
  std::string name;  // of the model
  std::vector<RecallPoint> by_pairs, by_distance;
};

// "3-4"; "1" of a range of one.
std::string range_text(std::int64_t first, std::int64_t last);

// Of a run's result.json: "test_accuracy_pairs_3_4" and so on. Empty for other tasks.
RecallCurves recall_curves_of(const nlohmann::ordered_json& result);

// Over repetitions with the same ranges; a range that some of them lack is left out.
RecallCurves mean_of(const std::string& name, const std::vector<RecallCurves>& repetitions);

// A model a row, a range a column; the first row is the header, whose first field is `title`. Empty without points.
std::vector<std::vector<std::string>> recall_grid(const std::string& title, const std::vector<RecallCurves>& models,
                                                  std::vector<RecallPoint> RecallCurves::*points);

// [{"first": 3, "last": 4, "accuracy": 0.5}, …]
nlohmann::ordered_json to_json(const std::vector<RecallPoint>& points);

}  // namespace cosformer::cli
