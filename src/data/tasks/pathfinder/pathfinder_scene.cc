#include "data/tasks/pathfinder/pathfinder_scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cosformer::data::pathfinder {
namespace {

constexpr float kTakenAbove = 0.3F;    // a pixel so far covered is not free
constexpr float kOverlapAbove = 1.8F;  // two areas may share soft edges, not more
constexpr int kTries = 3;
constexpr int kQuickDraws = 32;
constexpr double kLeastWeight = 1e-4;

struct Candidate {
  Point head;
  double direction = 0.0, weight = 0.0;
};

// Where the next dash may end, weighted by how free the place is and how straight on it lies.
void find_candidates(const Board& board, const PathRules& rules, Point pivot, double direction,
                     std::vector<Candidate>& candidates) {
  candidates.clear();
  for (const PathRules::Turn& turn : rules.turns) {
    const Point head{pivot.y + turn.offset.y, pivot.x + turn.offset.x};
    const double difference = std::abs(turn.direction - direction);
    const double angle = std::min(difference, 2 * std::numbers::pi - difference) * rules.continuity;
    if (angle >= std::numbers::pi / 2 || !board.inside(head)) continue;
    const double straight = std::cos(angle);
    const double free = 1.0 - static_cast<double>(board.taken_near(head, rules.gap));
    candidates.push_back({head, turn.direction, free * straight * straight});
  }
}

const Candidate& draw(const std::vector<Candidate>& candidates, double total, Random& random) {
  double left = random.unit() * total;
  for (const Candidate& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return candidate;
  }
  // Rounding may leave a little over: the last that has any weight.
  return *std::find_if(candidates.rbegin(), candidates.rend(), [](const Candidate& c) { return c.weight > 0; });
}

double reversed(double direction) {
  return direction < 0 ? direction + std::numbers::pi : direction - std::numbers::pi;
}

}  // namespace

PathRules::PathRules(int length_, int gap_, double continuity_) : length(length_), gap(gap_), continuity(continuity_) {
  const double radius = length + gap;
  for (int k = 0; k < 2 * std::numbers::pi * radius; ++k) {  // one for each pixel of the circle
    const Point offset{static_cast<int>(std::floor(radius * std::sin(k / radius))),
                       static_cast<int>(std::floor(radius * std::cos(k / radius)))};
    const auto same = [&](const Turn& turn) { return turn.offset == offset; };
    if (std::any_of(turns.begin(), turns.end(), same)) continue;
    turns.push_back({offset, std::atan2(offset.y, offset.x)});
  }
}

Board::Board(int size, int border)
    : size_(size), taken_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {
  for (int y = 0; y < size_; ++y) {
    for (int x = 0; x < size_; ++x) {
      if (std::min({y, x, size_ - 1 - y, size_ - 1 - x}) < border) taken(y, x) = 1.0F;
    }
  }
  empty_ = taken_;
}

double Board::free_fraction() const {
  const auto free = std::count_if(taken_.begin(), taken_.end(), [](float t) { return t <= kTakenAbove; });
  return static_cast<double>(free) / static_cast<double>(taken_.size());
}

bool Board::can_begin(const Dash& dash, int border, Point tail) const {
  const auto is_free = [&](int y, int x) {
    return y >= border && x >= border && y < size_ - border && x < size_ - border && taken(y, x) <= kTakenAbove;
  };
  return is_free(tail.y, tail.x) && std::all_of(dash.solid.begin(), dash.solid.end(),
                                                [&](Point o) { return is_free(tail.y + o.y, tail.x + o.x); });
}

std::optional<Point> Board::draw_beginning(const Dash& dash, int border, Random& random) const {
  const int side = size_ - 2 * border;
  if (side <= 0) return std::nullopt;
  // Trying pixels at random gives each that fits the same chance and is mostly quick; when few fit, they are listed.
  for (int attempt = 0; attempt < kQuickDraws; ++attempt) {
    const auto drawn =
        static_cast<int>(random.below(static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side)));
    const Point tail{border + drawn / side, border + drawn % side};
    if (can_begin(dash, border, tail)) return tail;
  }
  std::vector<Point> tails;
  for (int y = border; y < size_ - border; ++y) {
    for (int x = border; x < size_ - border; ++x) {
      if (can_begin(dash, border, {y, x})) tails.push_back({y, x});
    }
  }
  if (tails.empty()) return std::nullopt;
  return tails[static_cast<std::size_t>(random.below(tails.size()))];
}

void Board::take(const PlacedDash& placed) {
  const Stencil& area = placed.dash->keep_out;
  for (int dy = -area.radius; dy <= area.radius; ++dy) {
    for (int dx = -area.radius; dx <= area.radius; ++dx) {
      const Point p{placed.anchor.y + dy, placed.anchor.x + dx};
      if (inside(p)) taken(p.y, p.x) = std::max(taken(p.y, p.x), area.at(dy, dx));
    }
  }
}

bool Board::overlaps(const PlacedDash& placed) const {
  const Stencil& area = placed.dash->keep_out;
  for (int dy = -area.radius; dy <= area.radius; ++dy) {
    for (int dx = -area.radius; dx <= area.radius; ++dx) {
      const Point p{placed.anchor.y + dy, placed.anchor.x + dx};
      if (inside(p) && taken(p.y, p.x) + area.at(dy, dx) >= kOverlapAbove) return true;
    }
  }
  return false;
}

float Board::taken_near(Point p, int reach) const {
  float most = 0.0F;
  for (int dy = -reach; dy <= reach; ++dy) {
    for (int dx = -reach; dx <= reach; ++dx) {
      if (dy * dy + dx * dx > reach * reach || !inside({p.y + dy, p.x + dx})) continue;
      most = std::max(most, taken(p.y + dy, p.x + dx));
    }
  }
  return most;
}

std::optional<Path> begin_path(const Board& board, const DashSet& dashes, const PathRules& rules, Point tail,
                               double direction) {
  const Point head = moved(tail, direction, rules.length);
  const Point pivot = moved(head, reversed(direction), rules.length + rules.gap);
  if (!board.inside(tail) || !board.inside(head) || !board.inside(pivot)) return std::nullopt;
  return Path{pivot, direction, tail, {&dashes.towards(direction), tail}};
}

bool extend_path(Board& board, const DashSet& dashes, const PathRules& rules, Path& path, Random& random) {
  const Point pivot = moved(path.pivot, path.direction, rules.length + 2 * rules.gap);
  thread_local std::vector<Candidate> candidates;  // its memory is used again: this is the generator's inner loop
  find_candidates(board, rules, pivot, path.direction, candidates);
  double total = 0.0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  if (total < kLeastWeight) return false;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const Candidate& chosen = draw(candidates, total, random);
    // Drawn backwards from its head: the far end keeps the gap from the pivot.
    const PlacedDash placed{&dashes.towards(reversed(chosen.direction)), chosen.head};
    if (board.overlaps(placed)) continue;
    board.take(path.newest);
    path = {pivot, chosen.direction, chosen.head, placed};
    return true;
  }
  return false;
}

}  // namespace cosformer::data::pathfinder
