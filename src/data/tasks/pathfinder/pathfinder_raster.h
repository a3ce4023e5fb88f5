// Small antialiased pictures from which Pathfinder images are put together: a dash in every direction with the area it
// keeps free around itself, and a disc. Drawn `antialias` times finer and reduced with a Lanczos-3 filter.
#pragma once

#include <vector>

namespace cosformer::data::pathfinder {

struct Point {
  int y = 0, x = 0;
  bool operator==(const Point&) const = default;
};

// One square picture, values 0 to 1, around its anchor.
struct Stencil {
  int radius = 0;
  std::vector<float> values;  // (2 radius + 1)^2, row by row

  float at(int dy, int dx) const {
    return values[static_cast<std::size_t>((dy + radius) * (2 * radius + 1) + dx + radius)];
  }
};

struct Dash {
  Stencil line;
  Stencil keep_out;          // the line and the gap around it
  std::vector<Point> solid;  // offsets that keep_out covers wholly
};

class DashSet {
 public:
  // thickness * antialias must be a whole number.
  DashSet(int length, double thickness, int gap, int antialias);

  // The dash that begins at its anchor and runs in the direction `angle` (radians, from +x towards +y).
  const Dash& towards(double angle) const;

 private:
  int fine_length_, reach_, centre_;
  std::vector<Dash> dashes_;  // by the offset of the far end in the fine picture
};

Stencil make_disc(double radius, int antialias);

// `from` moved by `distance` in the direction `angle`, rounded up to whole pixels as the published generator does.
Point moved(Point from, double angle, double distance);

}  // namespace cosformer::data::pathfinder
