// Numbers by class against ones counted by hand.
#include "cli/eval/class_report.h"

#include <gtest/gtest.h>

namespace cosformer::cli {
namespace {

// Of 5 a's 3 are found, of 3 b's 1; there is no c, which one b is taken for.
const Confusion kConfusion{{"a", "b", "c"}, {3, 2, 0, 1, 1, 1, 0, 0, 0}};

TEST(ClassReport, HasPrecisionRecallAndF1) {
  const nlohmann::ordered_json json = class_json(kConfusion);
  const nlohmann::ordered_json &a = json["classes"][0], &c = json["classes"][2];
  EXPECT_EQ(a["class"], "a");
  EXPECT_EQ(a["examples"], 5);
  EXPECT_EQ(a["predicted"], 4);
  EXPECT_DOUBLE_EQ(a["precision"].get<double>(), 3.0 / 4);
  EXPECT_DOUBLE_EQ(a["recall"].get<double>(), 3.0 / 5);
  EXPECT_DOUBLE_EQ(a["f1"].get<double>(), 2 * 0.75 * 0.6 / (0.75 + 0.6));
  EXPECT_DOUBLE_EQ(c["precision"].get<double>(), 0);
  EXPECT_TRUE(c["recall"].is_null());
  EXPECT_EQ(json["confusion"].dump(), "[[3,2,0],[1,1,1],[0,0,0]]");
}

TEST(ClassReport, OfAClassThatWasNeverPredictedHasNoPrecision) {
  const nlohmann::ordered_json json = class_json({{"a", "b"}, {4, 0, 2, 0}});
  EXPECT_TRUE(json["classes"][1]["precision"].is_null());
  EXPECT_DOUBLE_EQ(json["classes"][1]["recall"].get<double>(), 0);
}

TEST(ClassReport, ShowsTheMatrixWhereItCanBeRead) {
  EXPECT_NE(class_report(kConfusion).find("is, taken for  a  b  c"), std::string::npos) << class_report(kConfusion);
  Confusion many;
  for (int i = 0; i < 40; ++i) many.classes.push_back("class " + std::to_string(i));
  many.counts.assign(1600, 0);
  EXPECT_NE(class_report(many).find("with --json"), std::string::npos);
}

}  // namespace
}  // namespace cosformer::cli
