// What a comparison makes of cells of the task recall: curves from results, means over seeds, tables, JSON.
#include "cli/compare/compare_recall.h"

#include <gtest/gtest.h>

#include "cli/compare/compare_report.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;

CellResult finished(const std::string& name, long long seed, const ordered_json& result) {
  CellResult cell;
  cell.task = "recall";
  cell.name = cell.attention = name;
  cell.seed = seed;
  cell.state = CellState::kFinished;
  cell.recall = recall_curves_of(result);
  return cell;
}

std::vector<CellResult> cells() {
  return {finished("plus", 0,
                   {{"test_accuracy", 0.5},
                    {"test_accuracy_pairs_1_1", 1.0},
                    {"test_accuracy_pairs_1025_2000", 0.25},
                    {"test_accuracy_distance_3_4", 0.125},
                    {"test_accuracy_distance_", 0.3},
                    {"test_accuracy_distance_x_4", 0.3},
                    {"valid_accuracy_pairs_2_2", 0.9}}),
          finished("plus", 1, {{"test_accuracy_pairs_1_1", 0.5}, {"test_accuracy_distance_3_4", 0.375}}),
          finished("softmax", 0, {{"test_accuracy_pairs_2_2", 0.75}, {"test_accuracy_distance_3_4", 1}}),
          finished("other", 0, {{"test_accuracy", 0.5}})};
}

TEST(CompareRecall, CurvesComeFromResults) {
  const RecallCurves curves = cells()[0].recall;
  ASSERT_EQ(curves.by_pairs.size(), 2U);
  EXPECT_EQ(curves.by_pairs[1].first, 1025);
  EXPECT_EQ(curves.by_pairs[1].last, 2000);
  EXPECT_EQ(curves.by_pairs[1].accuracy, 0.25);
  ASSERT_EQ(curves.by_distance.size(), 1U);
  EXPECT_TRUE(cells()[3].recall.by_pairs.empty());
}

TEST(CompareRecall, TablesHaveTheMeanOverSeeds) {
  const auto grids = recall_grids(cells(), "recall");
  ASSERT_EQ(grids.size(), 2U);
  using Grid = std::vector<std::vector<std::string>>;
  // A range that one of the seeds lacks has no mean.
  EXPECT_EQ(grids[0],
            (Grid{{"recall by pairs in the text", "1", "2"}, {"plus", "75.00%", ""}, {"softmax", "", "75.00%"}}));
  EXPECT_EQ(grids[1],
            (Grid{{"recall by tokens from pair to query", "3-4"}, {"plus", "25.00%"}, {"softmax", "100.0%"}}));
  EXPECT_TRUE(recall_grids(cells(), "listops").empty());
  EXPECT_NE(recall_tables(cells()).find("recall by pairs in the text"), std::string::npos);
  EXPECT_EQ(recall_tables({cells()[3]}), "");
}

TEST(CompareRecall, UnfinishedCellsDoNotCount) {
  std::vector<CellResult> some = cells();
  some[1].state = CellState::kFailed;
  EXPECT_EQ(recall_of_task(some, "recall").front().by_distance.front().accuracy, 0.125);
}

TEST(CompareRecall, ReportAndJsonHaveTheCurves) {
  CompareReport report;
  report.cells = cells();
  EXPECT_NE(report_html(report).find("recall by tokens from pair to query"), std::string::npos);
  const ordered_json json = to_json(report.cells, {}, {});
  EXPECT_EQ(json["cells"][0]["accuracy_by_pairs"][1],
            (ordered_json{{"first", 1025}, {"last", 2000}, {"accuracy", 0.25}}));
  EXPECT_FALSE(json["cells"][3].contains("accuracy_by_pairs"));
}

}  // namespace
}  // namespace cosformer::cli
