// Generated Pathfinder images: the same for every number of threads, balanced, and showing what their label says.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/tasks/pathfinder/pathfinder_generator.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using pathfinder::Point;
using ::testing::IsSubstring;

PathfinderOptions small(std::uint64_t seed, unsigned threads = 1) {
  PathfinderOptions options;
  options.seed = seed;
  options.threads = threads;
  options.train = 70;
  options.valid = 10;
  options.test = 6;
  return options;
}

double distance(Point a, Point b) {
  return std::hypot(a.y - b.y, a.x - b.x);
}

TEST(Pathfinder, SameBytesForAnyNumberOfThreads) {
  const TemporaryDirectory directory;
  std::vector<std::string> files;
  for (const unsigned threads : {1U, 3U}) {
    const std::string folder = directory.file(std::to_string(threads));
    open_or_generate_pathfinder(folder, small(9, threads));
    files.push_back(read_bytes(folder + "/pathfinder32-train.data") + read_bytes(folder + "/pathfinder32-valid.data") +
                    read_bytes(folder + "/pathfinder32-test.data"));
  }
  EXPECT_EQ(files[0], files[1]);
  const TemporaryDirectory other;
  open_or_generate_pathfinder(other.path(), small(10));
  EXPECT_NE(read_bytes(other.file("pathfinder32-train.data")), read_bytes(directory.file("1/pathfinder32-train.data")));
}

TEST(Pathfinder, DataSetsAreBalancedImages) {
  std::uint64_t reported = 0;
  const Splits splits = generate_pathfinder(small(1, 2), [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, reported);
    EXPECT_EQ(total, 86U);
    reported = done;
  });
  EXPECT_EQ(reported, 86U);
  std::set<std::string> different;
  for (const auto& part : {splits.train, splits.valid, splits.test}) {
    std::size_t same_path = 0;
    for (std::size_t i = 0; i < part->size(); ++i) {
      const Example example = part->get(i);
      ASSERT_EQ(example.first.size, 1024U);
      const auto* pixels = static_cast<const std::uint8_t*>(example.first.data);
      EXPECT_EQ(*std::max_element(pixels, pixels + 1024), 255) << "scaled to its brightest pixel";
      const auto dark = std::count(pixels, pixels + 1024, 0);
      EXPECT_GT(dark, 400);
      EXPECT_LT(dark, 900);
      different.emplace(pixels, pixels + 1024);
      same_path += example.label == 1 ? 1 : 0;
    }
    EXPECT_EQ(2 * same_path, part->size());
    EXPECT_EQ(part->info().width, 32);
    EXPECT_EQ(part->info().classes.size(), 2U);
    EXPECT_EQ(part->info().content, Content::kValues);
  }
  EXPECT_EQ(different.size(), 86U);
}

TEST(Pathfinder, DiscsAreWhereTheLabelSays) {
  const PathfinderPainter painter(small(4));
  std::vector<std::uint8_t> pixels(1024);
  int first_begins = 0, first_is_one = 0;
  constexpr int kImages = 300;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    const PathfinderScene scene = painter.paint(i, pixels);
    ASSERT_EQ(scene.label, painter.label_of(i));
    ASSERT_NE(painter.label_of(i / 2 * 2), painter.label_of(i / 2 * 2 + 1));
    first_is_one += i % 2 == 0 ? scene.label : 0;
    for (const auto& path : scene.paths) {
      ASSERT_EQ(path.size(), 14U);
      // From head to head a path moves by about a dash and two gaps, and by a bit more or less where it turns.
      for (std::size_t k = 2; k < path.size(); ++k) {
        ASSERT_GT(distance(path[k - 1], path[k]), 0.5);
        ASSERT_LT(distance(path[k - 1], path[k]), 8.0);
      }
    }
    EXPECT_NEAR(distance(scene.paths[0].front(), scene.paths[1].front()), 7.0, 0.8);
    const bool begins_first = scene.discs[0] == scene.paths[0].front();
    const auto& begin_path = scene.paths[begins_first ? 0 : 1];
    const auto& end_path = scene.paths[begins_first == (scene.label == 1) ? 0 : 1];
    ASSERT_EQ(scene.discs[0], begin_path.front());
    ASSERT_EQ(scene.discs[1], end_path.back());
    first_begins += begins_first ? 1 : 0;
    for (const Point disc : scene.discs) {
      EXPECT_GT(pixels[static_cast<std::size_t>(disc.y * 32 + disc.x)], 100) << "a disc is bright";
    }
  }
  const double spread = 5 * std::sqrt(kImages * 0.25);
  EXPECT_NEAR(first_begins, kImages / 2, spread);
  EXPECT_NEAR(first_is_one, kImages / 4, spread) << "the label does not follow from the number's parity";
}

TEST(Pathfinder, PathsAreCurvedButSmooth) {
  const PathfinderPainter painter(small(6));
  std::vector<std::uint8_t> pixels(1024);
  double turn_cosine = 0;
  int turns = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const PathfinderScene scene = painter.paint(i, pixels);
    for (const auto& path : scene.paths) {
      for (std::size_t k = 3; k + 1 < path.size(); ++k) {
        const Point a{path[k].y - path[k - 1].y, path[k].x - path[k - 1].x};
        const Point b{path[k + 1].y - path[k].y, path[k + 1].x - path[k].x};
        turn_cosine += (a.y * b.y + a.x * b.x) / (std::hypot(a.y, a.x) * std::hypot(b.y, b.x));
        ++turns;
      }
    }
  }
  EXPECT_GT(turn_cosine / turns, 0.6);
  EXPECT_LT(turn_cosine / turns, 0.98);
}

TEST(Pathfinder, LargerPublishedSettings) {
  for (const int size : {64, 128, 256}) {
    PathfinderOptions options = published_pathfinder(size);
    options.train = 2;
    options.valid = options.test = 0;
    const Splits splits = generate_pathfinder(options);
    EXPECT_EQ(splits.train->info().max_length, size * size);
  }
  EXPECT_THROW(published_pathfinder(48), UserError);
}

TEST(Pathfinder, ImpossibleOptions) {
  const auto refusal = [](auto change) {
    PathfinderOptions options = small(1);
    change(options);
    return message_of<UserError>([&] { generate_pathfinder(options); });
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "size 8", refusal([](auto& o) { o.size = 8; }));
  EXPECT_PRED_FORMAT2(IsSubstring, "whole number", refusal([](auto& o) { o.dash_thickness = 0.7; }));
  EXPECT_PRED_FORMAT2(IsSubstring, "no gap", refusal([](auto& o) { o.gaps.clear(); }));
  EXPECT_PRED_FORMAT2(IsSubstring, "seed_distance 8", refusal([](auto& o) { o.seed_distance = 8; }));
  EXPECT_PRED_FORMAT2(IsSubstring, "did not fit", refusal([](auto& o) {
                        o.path_dashes = 40;
                        o.dash_length = 8;
                      }));
}

}  // namespace
}  // namespace cosformer::data
