// What a comparison makes of its cells: statistics, rows, tables, JSON, the report.
#include "cli/compare/compare_results.h"

#include <cmath>

#include <gtest/gtest.h>

#include "cli/compare/compare_report.h"

namespace cosformer::cli {
namespace {

CellResult finished(const std::string& name, long long seed, double accuracy, double steps_per_s = 10) {
  CellResult cell;
  cell.task = "listops";
  cell.name = cell.attention = name;
  cell.seed = seed;
  cell.state = CellState::kFinished;
  cell.accuracy = accuracy;
  cell.loss = 1.5;
  cell.train_steps_per_s = steps_per_s;
  cell.inference_steps_per_s = 40;
  cell.peak_bytes = 1e6 * static_cast<double>(seed + 1);
  cell.parameters = 1234;
  return cell;
}

CellResult unfinished(const std::string& name, CellState state, const std::string& reason) {
  CellResult cell = finished(name, 0, 0);
  cell.state = state;
  cell.reason = reason;
  return cell;
}

SpeedPoint point(const std::string& name, long long length, double steps_per_s, const std::string& skipped = "") {
  return {name, name, length, steps_per_s, 3 * steps_per_s, 2e6, 77, skipped};
}

TEST(CompareSample, IsMeanAndSampleDeviation) {
  EXPECT_EQ(sample_of({}).count, 0U);
  EXPECT_EQ(sample_of({0.5}).mean, 0.5);
  EXPECT_EQ(sample_of({0.5}).deviation, 0);
  const Sample sample = sample_of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(sample.mean, 5);
  EXPECT_DOUBLE_EQ(sample.deviation, std::sqrt(32.0 / 7));
  EXPECT_EQ(percent_text(sample_of({0.4, 0.5})), "45.00 ± 7.07%");
  EXPECT_EQ(percent_text(sample_of({0.4})), "40.00%");
  EXPECT_EQ(percent_text(sample_of({})), "");
}

TEST(CompareSample, OfOneSeedHasTheStandardErrorOfItsTestPart) {
  CellResult one = finished("cosformer", 0, 0.4), other = finished("cosformer", 1, 0.5);
  one.test_examples = other.test_examples = 2000;
  const std::vector<CompareRow> single = rows_of({one});
  EXPECT_NEAR(single[0].standard_error, 0.011, 1e-4);  // as ListOps has it
  EXPECT_EQ(percent_text(single[0].accuracy, single[0].standard_error), "40.00 ± 1.10%");
  EXPECT_NE(compare_table(single, {}).find("± is the standard error"), std::string::npos);
  const std::vector<CompareRow> both = rows_of({one, other});
  EXPECT_EQ(percent_text(both[0].accuracy, both[0].standard_error), "45.00 ± 7.07%");
  EXPECT_NE(compare_table(both, {}).find("± is the standard deviation over the seeds"), std::string::npos);
  EXPECT_EQ(explain_spread(rows_of({finished("cosformer", 0, 0.4)})), "");  // results that do not say on how many
  EXPECT_NEAR(to_json({one}, {}, {})["rows"][0]["accuracy_standard_error"].get<double>(), 0.011, 1e-4);
}

TEST(CompareRows, GatherSeedsAndSayWhatIsMissing) {
  const std::vector<CompareRow> rows =
      rows_of({finished("cosformer", 0, 0.4, 10), finished("softmax", 0, 0.6),
               unfinished("reformer", CellState::kCannot, "not causal"), finished("cosformer", 1, 0.5, 20),
               unfinished("softmax", CellState::kFailed, "signal 9"), unfinished("linear", CellState::kPlanned, "")});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].name, "cosformer");
  EXPECT_EQ(rows[0].accuracy.count, 2U);
  EXPECT_DOUBLE_EQ(rows[0].accuracy.mean, 0.45);
  EXPECT_DOUBLE_EQ(rows[0].train_steps_per_s.mean, 15);
  EXPECT_DOUBLE_EQ(rows[0].peak_bytes, 2e6);
  EXPECT_EQ(rows[0].note, "");
  EXPECT_EQ(rows[1].accuracy.count, 1U);
  EXPECT_EQ(rows[1].note, "1 of 2 failed: signal 9");
  EXPECT_EQ(rows[2].note, "cannot be: not causal");
  EXPECT_EQ(rows[3].note, "not run yet");
}

TEST(CompareTable, HasFloorsFirstAndAligns) {
  const std::string text = compare_table(rows_of({finished("cosformer", 0, 0.4), finished("cosformer", 1, 0.5),
                                                  unfinished("linear", CellState::kFailed, "no luck")}),
                                         {{"listops", "", {{"most frequent class", 0.17}}}});
  const std::size_t floor = text.find("floor: most frequent class"), first = text.find("cosformer");
  ASSERT_NE(floor, std::string::npos);
  EXPECT_LT(floor, first);
  EXPECT_NE(text.find("17.00%"), std::string::npos);
  EXPECT_NE(text.find("45.00 ± 7.07%"), std::string::npos);
  EXPECT_NE(text.find("1,234"), std::string::npos);
  EXPECT_NE(text.find("failed: no luck"), std::string::npos);
}

TEST(CompareTable, LanguageModelsHaveBitsPerByteAndPerplexity) {
  CellResult cell = finished("cosformer", 0, 0);
  cell.task = "lm";
  cell.is_language = true;
  cell.bits_per_byte = 2.5;
  cell.loss = std::log(8.0);
  CellResult other = cell;
  other.seed = 1;
  other.bits_per_byte = 2.6;
  other.loss = std::log(8.2);
  const std::vector<CompareRow> rows = rows_of({cell, other});
  EXPECT_DOUBLE_EQ(quality_of(rows[0]).mean, 2.55);
  TaskFloors floors{"lm", "", {{"pairs of tokens", std::log(16.0)}}, 1.5};
  EXPECT_DOUBLE_EQ(quality_of(floors, std::log(16.0)), 1.5 * std::log(16.0));
  const std::string text = compare_table(rows, {floors});
  EXPECT_EQ(text.find("accuracy"), std::string::npos);
  EXPECT_NE(text.find("2.550 ± 0.071"), std::string::npos) << text;
  EXPECT_NE(text.find("8.100 ± 0.14"), std::string::npos) << text;
  EXPECT_NE(text.find("16.00"), std::string::npos) << text;
  const auto json = to_json({cell, other}, {floors}, {});
  EXPECT_FALSE(json["rows"][0].contains("accuracy"));
  EXPECT_DOUBLE_EQ(json["rows"][0]["bits_per_byte"], 2.55);
  EXPECT_DOUBLE_EQ(json["floors"][0]["perplexity"], 16);
  CompareReport report;
  report.cells = {cell, other};
  report.floors = {floors};
  EXPECT_NE(report_html(report).find("<th>bits per byte</th><th>perplexity</th>"), std::string::npos);
}

TEST(SpeedTable, HasLengthsAsColumnsAndReasonsAsLetters) {
  const std::vector<SpeedPoint> points{point("cosformer", 4096, 2.5), point("cosformer", 1024, 10),
                                       point("softmax", 1024, 5), point("softmax", 4096, 0, "needs 5 GB"),
                                       point("one", 1024, 0, "took too long")};
  const auto grid = speed_grid(points, SpeedQuantity::kTraining);
  EXPECT_EQ(grid[0], (std::vector<std::string>{"", "1,024", "4,096"}));
  EXPECT_EQ(grid[1], (std::vector<std::string>{"cosformer", "10.0", "2.50"}));
  EXPECT_EQ(grid[2], (std::vector<std::string>{"softmax", "5.00", "- (a)"}));
  EXPECT_EQ(grid[3], (std::vector<std::string>{"one", "- (b)", ""}));
  EXPECT_EQ(speed_grid(points, SpeedQuantity::kInference)[1][1], "30.0");
  EXPECT_EQ(speed_grid(points, SpeedQuantity::kMemory)[1][1], "2.00 MB");
  EXPECT_EQ(explain_skipped(points), (std::vector<std::string>{"a: softmax: needs 5 GB", "b: one: took too long"}));
  EXPECT_NE(speed_table(points).find("a: softmax: needs 5 GB"), std::string::npos);
}

TEST(CompareJson, TellsEverything) {
  const auto json = to_json({finished("cosformer", 0, 0.4), unfinished("linear", CellState::kFailed, "no luck")},
                            {{"listops", "", {{"rule", 0.17}}}},
                            {point("cosformer", 1024, 10), point("softmax", 1024, 0, "needs 5 GB")});
  EXPECT_EQ(json["rows"][0]["accuracy"], 0.4);
  EXPECT_TRUE(json["rows"][1]["accuracy"].is_null());
  EXPECT_EQ(json["cells"][1]["state"], "failed");
  EXPECT_EQ(json["cells"][1]["reason"], "no luck");
  EXPECT_EQ(json["floors"][0]["accuracy"], 0.17);
  EXPECT_EQ(json["speed"][0]["train_steps_per_second"], 10);
  EXPECT_EQ(json["speed"][1]["skipped"], "needs 5 GB");
}

TEST(CompareReport, IsWholeAndQuotesWhatOthersWrote) {
  CompareReport report;
  report.title = "a <b> & \"c\"";
  report.cells = {finished("cosformer", 0, 0.4), unfinished("linear", CellState::kFailed, "<script>x</script>")};
  report.floors = {{"listops", "described", {{"rule", 0.17}}}};
  report.speed = {point("cosformer", 1024, 10)};
  const std::string html = report_html(report);
  EXPECT_NE(html.find("<h1>a &lt;b&gt; &amp; &quot;c&quot;</h1>"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);  // nothing from a network
  EXPECT_NE(html.find("40.00%"), std::string::npos);
  EXPECT_NE(html.find("Speed and memory by length"), std::string::npos);
  EXPECT_EQ(html.substr(html.size() - 8), "</html>\n");
}

}  // namespace
}  // namespace cosformer::cli
