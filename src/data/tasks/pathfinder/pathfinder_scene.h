// The drawing board of one Pathfinder image: which pixels are taken, and dashes laid one after another.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/random.h"
#include "data/tasks/pathfinder/pathfinder_raster.h"

namespace cosformer::data::pathfinder {

// A dash at its place.
struct PlacedDash {
  const Dash* dash = nullptr;
  Point anchor;
};

// A path being extended. Its newest dash is not yet in the mask, so that the next one may begin beside it.
struct Path {
  Point pivot;             // around which the newest dash turned
  double direction = 0.0;  // radians
  Point tip;               // the end of the newest dash
  PlacedDash newest;
};

class Board {
 public:
  Board(int size, int border);

  void reset() { taken_ = empty_; }
  bool inside(Point p) const { return p.y >= 0 && p.x >= 0 && p.y < size_ && p.x < size_; }
  int size() const { return size_; }
  double free_fraction() const;

  // One of the pixels at which the dash could begin, all equally likely: there it would cover none that is taken, nor
  // any within `border` of the edge. Nothing when there is no such pixel.
  std::optional<Point> draw_beginning(const Dash& dash, int border, Random& random) const;
  // Adds what the dash keeps free.
  void take(const PlacedDash& placed);
  bool overlaps(const PlacedDash& placed) const;
  // How much of the disc of radius `reach` around p is taken, 0 to 1, by its most taken pixel.
  float taken_near(Point p, int reach) const;

 private:
  bool can_begin(const Dash& dash, int border, Point tail) const;
  float& taken(int y, int x) { return taken_[static_cast<std::size_t>(y * size_ + x)]; }
  float taken(int y, int x) const { return taken_[static_cast<std::size_t>(y * size_ + x)]; }

  int size_;
  std::vector<float> empty_, taken_;  // how much of each pixel is taken: at the beginning, now
};

// How the dashes of a path follow each other.
struct PathRules {
  PathRules(int length, int gap, double continuity);

  // A pixel of the circle around a pivot on which the next dash may end.
  struct Turn {
    Point offset;
    double direction = 0.0;
  };

  int length, gap;
  double continuity;
  std::vector<Turn> turns;
};

// A path of one dash that begins at `tail`; nothing when a part of it would lie outside.
std::optional<Path> begin_path(const Board& board, const DashSet& dashes, const PathRules& rules, Point tail,
                               double direction);

// Lays the next dash of the path: false when none fits.
bool extend_path(Board& board, const DashSet& dashes, const PathRules& rules, Path& path, Random& random);

}  // namespace cosformer::data::pathfinder
