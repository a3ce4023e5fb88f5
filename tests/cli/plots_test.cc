// What pictures show: legends beside the curves, what trivial rules reach, characters along the axes of a map.
#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_fixture.h"
#include "cli/attention_map/token_labels.h"
#include "cli/terminal/gnuplot.h"
#include "cli/train/curves.h"

namespace cosformer::cli {
namespace {

using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;
using Texts = std::vector<std::string>;

bool gnuplot_is_there() {
  return std::system("command -v gnuplot > /dev/null") == 0;
}

// Heights, from above, at which a text stands in a picture by gnuplot.
std::vector<double> heights_of(const std::string& svg, const std::string& text) {
  std::vector<double> heights;
  const std::regex placed("translate\\(([0-9.]+),([0-9.]+)\\)[^<]*>\\s*<text[^>]*>(<tspan[^>]*>)?\\s*([^<]*)<");
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), placed); at != std::sregex_iterator(); ++at) {
    if ((*at)[4].str().find(text) != std::string::npos) heights.push_back(std::stod((*at)[2].str()));
  }
  return heights;
}

class Curves : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gnuplot_is_there()) GTEST_SKIP() << "gnuplot is not installed";
    // Curves that go through every corner of their panels.
    std::string lines;
    for (int step = 1; step <= 40; ++step) {
      const double up = step / 40.0;
      lines += "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(step % 2 == 0 ? up : 1 - up) +
               "}\n{\"step\":" + std::to_string(step) + ",\"valid_loss\":" + std::to_string(1 - up) +
               ",\"valid_accuracy\":" + std::to_string(up) + "}\n";
    }
    write_bytes(run_.file("metrics.jsonl"), lines);
  }
  const TemporaryDirectory run_;
};

TEST_F(Curves, LegendsStandBelowThePanels) {
  draw_curves(run_.path(), {{"most frequent class", 0.25}});
  const std::string svg = read_bytes(run_.file("curves.svg"));
  const std::vector<double> axes = heights_of(svg, "step");
  ASSERT_EQ(axes.size(), 2U);
  for (const char* entry : {"training", "validation", "floor: most frequent class"}) {
    const std::vector<double> heights = heights_of(svg, entry);
    ASSERT_FALSE(heights.empty()) << entry;
    for (const double height : heights) EXPECT_GT(height, axes[0]) << entry << " stands where the curves are";
  }
}

TEST_F(Curves, ShowWhatTrivialRulesReach) {
  draw_curves(run_.path(), {{"most frequent class", 0.25}, {"it's a guess", 0.5}});
  const std::string svg = read_bytes(run_.file("curves.svg"));
  EXPECT_EQ(heights_of(svg, "floor: most frequent class").size(), 1U);
  EXPECT_EQ(heights_of(svg, "floor: it's a guess").size() + heights_of(svg, "floor: it&apos;s a guess").size(), 1U);
  draw_curves(run_.path(), {});
  EXPECT_TRUE(heights_of(read_bytes(run_.file("curves.svg")), "floor").empty());
}

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST(TokenLabels, AreCharactersNotBytes) {
  EXPECT_EQ(byte_labels(bytes_of("a b\n")), (Texts{"a", "␣", "b", "⏎"}));
  EXPECT_EQ(byte_labels(bytes_of("é€")), (Texts{"é", "", "€", "", ""}));
  EXPECT_EQ(byte_labels(bytes_of("x\xff\xe2\x82")), (Texts{"x", "<ff>", "<e2>", "<82>"}));
  EXPECT_EQ(byte_labels(bytes_of(std::string("\0\t", 2))), (Texts{"·", "⇥"}));
  EXPECT_TRUE(byte_labels({}).empty());
  EXPECT_EQ(visible("▁the cat\n"), "▁the␣cat⏎");
}

TEST(TokenLabels, StandAtTheirTokens) {
  EXPECT_EQ(token_tics({"a", "'", "", "b"}), "('a' 1, '''' 2, 'b' 4)");
  EXPECT_TRUE(all_have_room(Texts(96, "a")));
}

TEST(TokenLabels, OfLongTextsArePieces) {
  const Texts labels(960, "a");
  EXPECT_FALSE(all_have_room(labels));
  const std::string tics = token_tics(labels);
  EXPECT_EQ(tics.substr(0, 40), "('aaaaaaaaaaaa' 1, 'aaaaaaaaaaaa' 41, 'a");
  EXPECT_EQ(std::count(tics.begin(), tics.end(), ','), 23);
}

}  // namespace
}  // namespace cosformer::cli
