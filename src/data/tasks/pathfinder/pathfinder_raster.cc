#include "data/tasks/pathfinder/pathfinder_raster.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace cosformer::data::pathfinder {
namespace {

constexpr double kLobes = 3.0;
// A pixel counts as wholly covered when it would be 255 of 255.
constexpr float kSolid = 254.5F / 255.0F;

double lanczos(double x) {
  if (std::abs(x) >= kLobes) return 0.0;
  if (x == 0.0) return 1.0;
  const double angle = std::numbers::pi * x;
  return kLobes * std::sin(angle) * std::sin(angle / kLobes) / (angle * angle);
}

// A square picture at the finer scale.
class Canvas {
 public:
  explicit Canvas(int size) : size_(size), pixels_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}
  int size() const { return size_; }
  float at(int y, int x) const { return inside(y, x) ? pixels_[index(y, x)] : 0.0F; }
  void set(int y, int x) {
    if (inside(y, x)) pixels_[index(y, x)] = 1.0F;
  }

 private:
  bool inside(int y, int x) const { return y >= 0 && x >= 0 && y < size_ && x < size_; }
  std::size_t index(int y, int x) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(x);
  }

  int size_;
  std::vector<float> pixels_;
};

// One pixel of each step along the longer axis (more when thick), ends included.
void draw_line(Canvas& canvas, Point from, Point to, int thickness) {
  const bool steep = std::abs(to.y - from.y) > std::abs(to.x - from.x);
  const auto along = [&](Point p) { return steep ? p.y : p.x; };
  const auto across = [&](Point p) { return steep ? p.x : p.y; };
  if (along(from) > along(to)) std::swap(from, to);
  const int steps = along(to) - along(from);
  const double slope = steps == 0 ? 0.0 : static_cast<double>(across(to) - across(from)) / steps;
  const double half = std::max(0.5, 0.5 * thickness * std::sqrt(1.0 + slope * slope));
  for (int step = 0; step <= steps; ++step) {
    const double middle = across(from) + slope * step;
    for (int a = static_cast<int>(std::ceil(middle - half)); a < middle + half; ++a) {
      const int l = along(from) + step;
      canvas.set(steep ? l : a, steep ? a : l);
    }
  }
}

Canvas dilated(const Canvas& source, int radius) {
  Canvas result(source.size());
  for (int y = 0; y < source.size(); ++y) {
    for (int x = 0; x < source.size(); ++x) {
      if (source.at(y, x) == 0.0F) continue;
      for (int dy = -radius; dy <= radius; ++dy) {
        for (int dx = -radius; dx <= radius; ++dx) {
          if (dy * dy + dx * dx <= radius * radius) result.set(y + dy, x + dx);
        }
      }
    }
  }
  return result;
}

// Reduces to 2 radius + 1 pixels a side.
Stencil reduced(const Canvas& canvas, int radius) {
  const int small = 2 * radius + 1, large = canvas.size();
  const double scale = static_cast<double>(large) / small;
  std::vector<std::vector<double>> weights(static_cast<std::size_t>(small));
  for (int i = 0; i < small; ++i) {
    auto& row = weights[static_cast<std::size_t>(i)];
    double sum = 0.0;
    for (int j = 0; j < large; ++j) {
      row.push_back(lanczos((j + 0.5) / scale - (i + 0.5)));
      sum += row.back();
    }
    for (double& weight : row) weight /= sum;
  }
  Stencil stencil{radius, {}};
  std::vector<double> columns(static_cast<std::size_t>(large));
  for (const auto& weight_y : weights) {
    for (int x = 0; x < large; ++x) {
      double sum = 0.0;
      for (int y = 0; y < large; ++y)
        sum += weight_y[static_cast<std::size_t>(y)] * static_cast<double>(canvas.at(y, x));
      columns[static_cast<std::size_t>(x)] = sum;
    }
    for (const auto& weight_x : weights) {
      double sum = 0.0;
      for (std::size_t x = 0; x < columns.size(); ++x) sum += weight_x[x] * columns[x];
      stencil.values.push_back(static_cast<float>(std::clamp(sum, 0.0, 1.0)));
    }
  }
  return stencil;
}

}  // namespace

Point moved(Point from, double angle, double distance) {
  return {static_cast<int>(std::ceil(from.y + distance * std::sin(angle))),
          static_cast<int>(std::ceil(from.x + distance * std::cos(angle)))};
}

DashSet::DashSet(int length, double thickness, int gap, int antialias)
    : fine_length_(length * antialias), reach_(fine_length_ + 1) {
  const int radius = length + static_cast<int>(std::ceil(thickness)) + gap;
  centre_ = radius * antialias;
  const int fine_thickness = static_cast<int>(std::lround(thickness * antialias));
  for (int dy = -reach_; dy <= reach_; ++dy) {
    for (int dx = -reach_; dx <= reach_; ++dx) {
      dashes_.emplace_back();
      // Rounding moves the far end by less than a pixel on each axis: other offsets never occur.
      if (std::abs(std::hypot(dy, dx) - fine_length_) > 1.5) continue;
      Canvas canvas(2 * centre_ + 1);
      draw_line(canvas, {centre_, centre_}, {centre_ + dy, centre_ + dx}, fine_thickness);
      Dash& dash = dashes_.back();
      dash.line = reduced(canvas, radius);
      dash.keep_out = reduced(dilated(canvas, gap * antialias), radius);
      for (int y = -radius; y <= radius; ++y) {
        for (int x = -radius; x <= radius; ++x) {
          if (dash.keep_out.at(y, x) >= kSolid) dash.solid.push_back({y, x});
        }
      }
    }
  }
}

const Dash& DashSet::towards(double angle) const {
  const Point end = moved({centre_, centre_}, angle, fine_length_);
  const int side = 2 * reach_ + 1;
  return dashes_.at(static_cast<std::size_t>((end.y - centre_ + reach_) * side + end.x - centre_ + reach_));
}

Stencil make_disc(double radius, int antialias) {
  // The pixel at the disc's centre begins where the centre lies, so at the finer scale the picture is not symmetric.
  const int reach = static_cast<int>(std::ceil(radius)) + static_cast<int>(kLobes);
  const int side = 2 * reach + 1;
  Canvas canvas(side * antialias);
  const int centre = reach * antialias;
  const double limit = radius * antialias * radius * antialias;
  for (int y = 0; y < canvas.size(); ++y) {
    for (int x = 0; x < canvas.size(); ++x) {
      if ((y - centre) * (y - centre) + (x - centre) * (x - centre) <= limit) canvas.set(y, x);
    }
  }
  return reduced(canvas, reach);
}

}  // namespace cosformer::data::pathfinder
