// Makes the Pathfinder task of the Long Range Arena: two long dashed paths among short ones, two discs on path ends;
// are the discs on one path (label 1) or on two (label 0)?
//
// Follows the published generator's procedure and options, not its random numbers: the images are distributed like the
// published ones. Image number i of a seed depends on the seed and i alone, so the same seed gives the same bytes
// whatever the number of threads. Labels are balanced: of the images 2k and 2k + 1 one has each label.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/tasks/generated_splits.h"
#include "data/tasks/pathfinder/pathfinder_raster.h"

namespace cosformer::data {

struct PathfinderOptions {
  std::uint64_t seed = 0;
  std::size_t train = 160000, valid = 20000, test = 20000;
  int size = 32;   // pixels a side
  int border = 1;  // pixels kept free
  int path_dashes = 14;
  int distractors = 5, distractor_dashes = 4;
  int dash_length = 2;
  double dash_thickness = 0.5;
  std::vector<int> gaps = {1};  // between dashes; one is drawn for each image
  double disc_radius = 1.5;
  int seed_distance = 7;                                  // between the beginnings of the paths
  double continuity = 1.0;                                // how strongly a path goes straight on
  double path_contrast = 1.5, distractor_contrast = 2.0;  // before the image is scaled to its brightest pixel
  int antialias = 2;
  unsigned threads = 0;  // 0: as many as processors
};

// The published "hard" settings for images of 32, 64, 128 (Path-X) or 256 pixels; UserError for another size.
PathfinderOptions published_pathfinder(int size);

// Throws UserError, naming the option, for what cannot be drawn.
void require_possible(const PathfinderOptions& options);

// The options that decide the content, as JSON.
std::string provenance_of(const PathfinderOptions& options);

// Where things are in an image; for those who check it.
struct PathfinderScene {
  std::array<std::vector<pathfinder::Point>, 2> paths;  // the first tail, then the head of each further dash
  std::array<pathfinder::Point, 2> discs;
  int label = 0;
};

class PathfinderPainter {
 public:
  // Throws UserError for impossible options.
  explicit PathfinderPainter(const PathfinderOptions& options);
  ~PathfinderPainter();

  // Fills size * size pixels, row by row. Throws UserError when the paths do not fit whatever is tried. May be called
  // from several threads.
  PathfinderScene paint(std::uint64_t index, std::span<std::uint8_t> pixels) const;
  int label_of(std::uint64_t index) const;

 private:
  struct Parts;
  PathfinderOptions options_;
  std::unique_ptr<const Parts> parts_;
};

Splits generate_pathfinder(const PathfinderOptions& options, const Progress& progress = {});

Splits open_or_generate_pathfinder(const std::string& folder, const PathfinderOptions& options,
                                   const Progress& progress = {});

}  // namespace cosformer::data
