// The options of Pathfinder images: what is possible, what was published, and their text form.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/tasks/pathfinder/pathfinder_generator.h"

namespace cosformer::data {

void require_possible(const PathfinderOptions& options) {
  const auto require = [](bool possible, const std::string& what) {
    if (!possible) throw UserError("cannot generate Pathfinder images with " + what);
  };
  const auto text = [](double number) { return nlohmann::json(number).dump(); };
  require(options.size >= 16 && options.size <= 1024,
          fmt::format("size {}; expected 16 to 1024 pixels", text(options.size)));
  require(options.border >= 0 && options.border < options.size / 2, "border " + text(options.border));
  require(options.path_dashes >= 2 && options.path_dashes <= 1000,
          fmt::format("path_dashes {}; expected 2 to 1000", text(options.path_dashes)));
  require(options.distractors >= 0 && options.distractors <= 1000 && options.distractor_dashes >= 1 &&
              options.distractor_dashes <= 1000,
          fmt::format("distractors {} of {} dashes", text(options.distractors), text(options.distractor_dashes)));
  require(options.dash_length >= 1 && options.dash_length <= options.size / 4,
          fmt::format("dash_length {}; expected 1 to a quarter of the size", text(options.dash_length)));
  require(options.antialias >= 1 && options.antialias <= 8,
          fmt::format("antialias {}; expected 1 to 8", text(options.antialias)));
  const double fine = options.dash_thickness * options.antialias;
  require(fine >= 1 && fine <= options.size && fine == std::floor(fine),
          fmt::format("dash_thickness {}; expected a whole number when multiplied by antialias",
                      text(options.dash_thickness)));
  require(!options.gaps.empty(), "no gap; expected at least one");
  for (const int gap : options.gaps) {
    require(gap >= 1 && gap <= options.size / 8, fmt::format("gap {}; expected 1 to an eighth of the size", text(gap)));
  }
  require(options.disc_radius > 0 && options.disc_radius <= options.size / 4.0,
          "disc_radius " + text(options.disc_radius));
  require(options.seed_distance >= 1 && options.seed_distance < options.size / 4,
          fmt::format("seed_distance {}; expected less than a quarter of the size", text(options.seed_distance)));
  require(options.continuity > 0 && options.path_contrast > 0 && options.distractor_contrast > 0,
          "continuity or a contrast that is not positive");
}

PathfinderOptions published_pathfinder(int size) {
  PathfinderOptions options;
  options.size = size;
  if (size == 32) return options;
  options.dash_length = 5;
  options.continuity = 1.8;
  const auto set = [&](double thickness, std::vector<int> gaps, double radius, int distance, int distractors,
                       double contrast) {
    options.dash_thickness = thickness;
    options.gaps = std::move(gaps);
    options.disc_radius = radius;
    options.seed_distance = distance;
    options.distractors = distractors;
    options.path_contrast = options.distractor_contrast = contrast;
  };
  switch (size) {
    case 64: set(1.0, {1}, 2.5, 12, 5, 0.8); break;
    case 128: set(1.5, {2, 3}, 3.0, 20, 8, 0.9); break;
    case 256:
      set(2.0, {3}, 5.0, 27, 7, 1.0);
      options.border = 22;
      break;
    default:
      throw UserError(fmt::format(
          "there are no published Pathfinder settings for {} pixels a side; expected 32, 64, 128 or 256", size));
  }
  return options;
}

std::string provenance_of(const PathfinderOptions& options) {
  return nlohmann::json{{"generator", "pathfinder"},
                        {"version", 1},
                        {"seed", options.seed},
                        {"train", options.train},
                        {"valid", options.valid},
                        {"test", options.test},
                        {"size", options.size},
                        {"border", options.border},
                        {"path_dashes", options.path_dashes},
                        {"distractors", options.distractors},
                        {"distractor_dashes", options.distractor_dashes},
                        {"dash_length", options.dash_length},
                        {"dash_thickness", options.dash_thickness},
                        {"gaps", options.gaps},
                        {"disc_radius", options.disc_radius},
                        {"seed_distance", options.seed_distance},
                        {"continuity", options.continuity},
                        {"path_contrast", options.path_contrast},
                        {"distractor_contrast", options.distractor_contrast},
                        {"antialias", options.antialias}}
      .dump();
}

}  // namespace cosformer::data
