#include "data/tasks/pathfinder/pathfinder_generator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/random.h"
#include "data/tasks/pathfinder/pathfinder_scene.h"

namespace cosformer::data {
namespace {

using pathfinder::Board;
using pathfinder::DashSet;
using pathfinder::Path;
using pathfinder::PathRules;
using pathfinder::PlacedDash;
using pathfinder::Point;
using pathfinder::Stencil;

constexpr int kBeginTries = 3;
constexpr int kDistractorTries = 5;
constexpr double kFullBelow = 0.01;  // free fraction of the board at which no distractor is begun
constexpr int kPairTries = 200'000;  // far more than the published settings ever take
constexpr std::size_t kImagesPerPiece = 64;

double random_direction(Random& random) {
  return (static_cast<double>(random.below(360)) - 180.0) * std::numbers::pi / 180.0;
}

// One image in the making.
class Scene {
 public:
  Scene(const PathfinderOptions& options, const DashSet& dashes, const PathRules& rules, Random& random)
      : options_(options), dashes_(dashes), rules_(rules), random_(random), board_(options.size, options.border) {}

  struct Drawn {
    PlacedDash placed;
    double contrast;
  };

  // The two long paths; false when they did not fit this time.
  bool lay_pair(PathfinderScene& scene) {
    board_.reset();
    drawn_.clear();
    const auto first = begin_near_centre();
    if (!first) return false;
    const auto second = begin_beside(first->tip);
    if (!second) return false;
    std::array<Path, 2> paths = {*first, *second};
    for (std::size_t p = 0; p < 2; ++p) {
      scene.paths[p] = {paths[p].tip};
      drawn_.push_back({paths[p].newest, options_.path_contrast});
    }
    for (int dash = 1; dash < options_.path_dashes; ++dash) {
      for (std::size_t p = 0; p < 2; ++p) {
        if (!extend_path(board_, dashes_, rules_, paths[p], random_)) return false;
        scene.paths[p].push_back(paths[p].tip);
        drawn_.push_back({paths[p].newest, options_.path_contrast});
      }
    }
    for (const Path& path : paths) board_.take(path.newest);
    return true;
  }

  // As many as fit.
  void lay_distractors() {
    for (int i = 0; i < options_.distractors; ++i) {
      for (int attempt = 0; attempt < kDistractorTries; ++attempt) {
        const Board board_before = board_;
        const std::size_t drawn_before = drawn_.size();
        if (lay_distractor()) break;
        board_ = board_before;
        drawn_.resize(drawn_before);
      }
    }
  }

  const std::vector<Drawn>& drawn() const { return drawn_; }

 private:
  std::optional<Path> begin_at_one_of(int border) {
    for (int attempt = 0; attempt < kBeginTries; ++attempt) {
      const double direction = random_direction(random_);
      const auto tail = board_.draw_beginning(dashes_.towards(direction), border, random_);
      if (!tail) return std::nullopt;
      if (auto path = begin_path(board_, dashes_, rules_, *tail, direction)) return path;
    }
    return std::nullopt;
  }

  std::optional<Path> begin_near_centre() { return begin_at_one_of(2 * options_.seed_distance); }

  std::optional<Path> begin_beside(Point other) {
    for (int attempt = 0; attempt < kBeginTries; ++attempt) {
      const double direction = random_direction(random_), around = random_direction(random_);
      const Point tail{static_cast<int>(std::lround(other.y + options_.seed_distance * std::sin(around))),
                       static_cast<int>(std::lround(other.x + options_.seed_distance * std::cos(around)))};
      if (auto path = begin_path(board_, dashes_, rules_, tail, direction)) return path;
    }
    return std::nullopt;
  }

  bool lay_distractor() {
    if (board_.free_fraction() < kFullBelow) return false;
    auto path = begin_at_one_of(1);
    if (!path) return false;
    drawn_.push_back({path->newest, options_.distractor_contrast});
    for (int dash = 1; dash < options_.distractor_dashes; ++dash) {
      if (!extend_path(board_, dashes_, rules_, *path, random_)) return false;
      drawn_.push_back({path->newest, options_.distractor_contrast});
    }
    board_.take(path->newest);
    return true;
  }

  const PathfinderOptions& options_;
  const DashSet& dashes_;
  const PathRules& rules_;
  Random& random_;
  Board board_;
  std::vector<Drawn> drawn_;
};

void composite(std::vector<float>& image, int size, const Stencil& stencil, Point anchor, double contrast) {
  for (int dy = -stencil.radius; dy <= stencil.radius; ++dy) {
    for (int dx = -stencil.radius; dx <= stencil.radius; ++dx) {
      const int y = anchor.y + dy, x = anchor.x + dx;
      if (y < 0 || x < 0 || y >= size || x >= size) continue;
      float& pixel = image[static_cast<std::size_t>(y * size + x)];
      pixel = std::max(pixel, stencil.at(dy, dx) * static_cast<float>(contrast));
    }
  }
}

}  // namespace

struct PathfinderPainter::Parts {
  std::vector<DashSet> dashes;  // for each gap
  std::vector<PathRules> rules;
  Stencil disc;
};

PathfinderPainter::PathfinderPainter(const PathfinderOptions& options) : options_(options) {
  require_possible(options_);
  Parts parts;
  for (const int gap : options_.gaps) {
    parts.dashes.emplace_back(options_.dash_length, options_.dash_thickness, gap, options_.antialias);
    parts.rules.emplace_back(options_.dash_length, gap, options_.continuity);
  }
  parts.disc = pathfinder::make_disc(options_.disc_radius, options_.antialias);
  parts_ = std::make_unique<const Parts>(std::move(parts));
}

PathfinderPainter::~PathfinderPainter() = default;

int PathfinderPainter::label_of(std::uint64_t index) const {
  Random random(options_.seed, RandomStream::kPathfinderLabel, index / 2);
  return static_cast<int>((random.below(2) + index) % 2);
}

PathfinderScene PathfinderPainter::paint(std::uint64_t index, std::span<std::uint8_t> pixels) const {
  Random random(options_.seed, RandomStream::kPathfinder, index);
  const std::size_t gap = random.below(options_.gaps.size());
  Scene scene(options_, parts_->dashes[gap], parts_->rules[gap], random);
  PathfinderScene result;
  int attempt = 0;
  while (!scene.lay_pair(result)) {
    if (++attempt < kPairTries) continue;
    throw UserError(
        fmt::format("cannot generate Pathfinder images: two paths of {} dashes did not fit into {} pixels a side; make "
                    "the image larger or the paths shorter",
                    options_.path_dashes, options_.size));
  }
  scene.lay_distractors();

  result.label = label_of(index);
  const std::size_t begin = random.below(2);
  const std::size_t end = result.label == 1 ? begin : 1 - begin;
  result.discs = {result.paths[begin].front(), result.paths[end].back()};

  std::vector<float> image(pixels.size(), 0.0F);
  for (const auto& [placed, contrast] : scene.drawn()) {
    composite(image, options_.size, placed.dash->line, placed.anchor, contrast);
  }
  for (const Point disc : result.discs) composite(image, options_.size, parts_->disc, disc, 1.0);
  const float brightest = *std::max_element(image.begin(), image.end());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>(image[i] * (255.0F / brightest) + 0.5F);
  }
  return result;
}

Splits generate_pathfinder(const PathfinderOptions& options, const Progress& progress) {
  const PathfinderPainter painter(options);
  const unsigned threads = thread_count(options.threads);
  const std::size_t pixels = static_cast<std::size_t>(options.size) * static_cast<std::size_t>(options.size);
  const std::size_t total = options.train + options.valid + options.test;
  std::uint64_t begin = 0;

  const auto generate_part = [&](std::size_t size) {
    DatasetBuilder builder(ElementType::kU8);
    const std::uint64_t part_end = begin + size;
    while (begin < part_end) {
      const std::size_t count = std::min<std::size_t>(part_end - begin, threads * kImagesPerPiece * 4);
      std::vector<std::uint8_t> block(count * pixels);
      run_pieces((count + kImagesPerPiece - 1) / kImagesPerPiece, threads, [&](std::size_t piece) {
        for (std::size_t i = piece * kImagesPerPiece; i < std::min(count, (piece + 1) * kImagesPerPiece); ++i) {
          painter.paint(begin + i, std::span(block).subspan(i * pixels, pixels));
        }
      });
      for (std::size_t i = 0; i < count; ++i) {
        builder.add(std::span<const std::uint8_t>(block).subspan(i * pixels, pixels), painter.label_of(begin + i));
      }
      begin += count;
      if (progress) progress(begin, total);
    }
    DatasetInfo info;
    info.name = "pathfinder";
    info.content = Content::kValues;
    info.vocabulary = kByteVocabulary;
    info.value_scale = 1.0F / 255.0F;
    info.width = info.height = options.size;
    info.classes = {"different paths", "same path"};
    info.provenance = provenance_of(options);
    return builder.finish(std::move(info));
  };
  Splits splits;
  splits.train = generate_part(options.train);
  splits.valid = generate_part(options.valid);
  splits.test = generate_part(options.test);
  return splits;
}

Splits open_or_generate_pathfinder(const std::string& folder, const PathfinderOptions& options,
                                   const Progress& progress) {
  return open_or_generate(folder, "pathfinder" + std::to_string(options.size), provenance_of(options),
                          [&] { return generate_pathfinder(options, progress); });
}

}  // namespace cosformer::data
