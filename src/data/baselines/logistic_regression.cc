#include "data/baselines/logistic_regression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <utility>

#include "base/parallel.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kBlock = FeatureTable::kBlock;
constexpr std::size_t kPiece = 16;   // blocks that are summed by one thread: fixed, so that sums have one order
constexpr std::size_t kMemory = 10;  // pairs of steps and gradient changes that L-BFGS remembers
constexpr double kDescent = 1e-4;    // of the line search: the part of the promised decrease that is enough
constexpr double kSmallGain = 1e-7;  // relative decrease of the loss below which the search ends
constexpr int kShortenings = 30;

using Vector = std::vector<double>;
using Block = std::array<float, kBlock>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(Vector& to, double factor, const Vector& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

// Lanes of their own, so that the compiler may use vector registers without reordering a sum.
float dot(const float* a, const float* b) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> lanes{};
  for (std::size_t i = 0; i < kBlock; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

// scores[c][i] of the examples of a block.
void score(const FeatureTable& table, const Vector& weights, std::size_t block, std::vector<Block>& scores) {
  const std::size_t features = table.features();
  for (std::size_t c = 0; c < scores.size(); ++c) {
    const double* row = weights.data() + c * (features + 1);
    scores[c].fill(static_cast<float>(row[features]));
    for (std::size_t f = 0; f < features; ++f) {
      const auto weight = static_cast<float>(row[f]);
      const float* column = table.column(block, f);
      for (std::size_t i = 0; i < kBlock; ++i) scores[c][i] += weight * column[i];
    }
  }
}

struct Objective {
  const FeatureTable& table;
  std::span<const std::int32_t> labels;
  std::size_t classes;
  const LogisticOptions& options;

  // The loss at `weights`; its gradient is written.
  double operator()(const Vector& weights, Vector& gradient) const {
    const std::size_t pieces = (table.blocks() + kPiece - 1) / kPiece;
    std::vector<Vector> gradients(pieces, Vector(weights.size(), 0.0));
    std::vector<double> losses(pieces, 0.0);
    run_pieces(pieces, thread_count(options.threads), [&](std::size_t piece) {
      std::vector<Block> scores(classes);
      const std::size_t end = std::min(table.blocks(), (piece + 1) * kPiece);
      for (std::size_t block = piece * kPiece; block < end; ++block) {
        score(table, weights, block, scores);
        losses[piece] += turn_to_errors(block, scores);
        add_gradient(block, scores, gradients[piece]);
      }
    });
    const double scale = 1.0 / static_cast<double>(table.examples());
    double loss = 0;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      loss += losses[piece] * scale;
      add_scaled(gradient, scale, gradients[piece]);
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (i % (table.features() + 1) == table.features()) continue;  // the constants are free
      loss += 0.5 * options.weight_penalty * weights[i] * weights[i];
      gradient[i] += options.weight_penalty * weights[i];
    }
    return loss;
  }

  // Scores become probabilities less what was right; gives the loss of the block.
  double turn_to_errors(std::size_t block, std::vector<Block>& scores) const {
    double loss = 0;
    const std::size_t first = block * kBlock;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const bool exists = first + i < table.examples();
      float most = scores[0][i];
      for (std::size_t c = 1; c < classes; ++c) most = std::max(most, scores[c][i]);
      float sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += scores[c][i] = std::exp(scores[c][i] - most);
      for (std::size_t c = 0; c < classes; ++c) scores[c][i] = exists ? scores[c][i] / sum : 0.0F;
      if (!exists) continue;
      float& right = scores[static_cast<std::size_t>(labels[first + i])][i];
      loss -= std::log(std::max(right, 1e-30F));
      right -= 1.0F;
    }
    return loss;
  }

  void add_gradient(std::size_t block, const std::vector<Block>& errors, Vector& gradient) const {
    const std::size_t features = table.features();
    for (std::size_t c = 0; c < classes; ++c) {
      double* row = gradient.data() + c * (features + 1);
      for (std::size_t f = 0; f < features; ++f)
        row[f] += static_cast<double>(dot(errors[c].data(), table.column(block, f)));
      for (const float error : errors[c]) row[features] += static_cast<double>(error);
    }
  }
};

struct Remembered {
  Vector step, change;
  double curvature = 0;  // of the two
};

// The gradient seen through the curvature remembered, downhill.
Vector direction_of(const Vector& gradient, const std::deque<Remembered>& memory) {
  Vector direction = gradient;
  std::vector<double> factors(memory.size());
  for (std::size_t k = memory.size(); k-- > 0;) {
    factors[k] = dot(memory[k].step, direction) / memory[k].curvature;
    add_scaled(direction, -factors[k], memory[k].change);
  }
  if (!memory.empty()) {
    const Remembered& last = memory.back();
    const double scale = last.curvature / dot(last.change, last.change);
    for (double& value : direction) value *= scale;
  }
  for (std::size_t k = 0; k < memory.size(); ++k) {
    add_scaled(direction, factors[k] - dot(memory[k].change, direction) / memory[k].curvature, memory[k].step);
  }
  for (double& value : direction) value = -value;
  return direction;
}

void minimise(const Objective& objective, int iterations, Vector& weights) {
  Vector gradient(weights.size()), next_gradient(weights.size());
  double loss = objective(weights, gradient);
  std::deque<Remembered> memory;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const Vector direction = direction_of(gradient, memory);
    const double slope = dot(direction, gradient);
    if (!(slope < 0)) return;
    double length = memory.empty() ? 1.0 / std::max(1.0, std::sqrt(-slope)) : 1.0, next_loss = 0;
    Vector next;
    int tries = 0;
    for (;; length *= 0.5) {
      next = weights;
      add_scaled(next, length, direction);
      next_loss = objective(next, next_gradient);
      if (next_loss <= loss + kDescent * length * slope) break;
      if (++tries == kShortenings) return;
    }
    Remembered pair{next, next_gradient, 0};
    add_scaled(pair.step, -1, weights);
    add_scaled(pair.change, -1, gradient);
    pair.curvature = dot(pair.step, pair.change);
    if (pair.curvature > 1e-12) memory.push_back(std::move(pair));
    if (memory.size() > kMemory) memory.pop_front();
    const double gain = loss - next_loss;
    weights = std::move(next);
    std::swap(gradient, next_gradient);
    loss = next_loss;
    if (gain <= kSmallGain * std::max(loss, 1e-3)) return;
  }
}

}  // namespace

FeatureTable::FeatureTable(std::size_t examples, std::size_t features)
    : examples_(examples), features_(features), values_(blocks() * kBlock * features, 0.0F) {}

Standardisation measure(const FeatureTable& table) {
  Standardisation result;
  const auto count = static_cast<double>(table.examples());
  for (std::size_t f = 0; f < table.features(); ++f) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < table.examples(); ++i) sum += static_cast<double>(table.at(i, f));
    const double mean = sum / count;
    for (std::size_t i = 0; i < table.examples(); ++i) {
      const double off = static_cast<double>(table.at(i, f)) - mean;
      squares += off * off;
    }
    const double deviation = std::sqrt(squares / count);
    result.mean.push_back(static_cast<float>(mean));
    // What rounding leaves of a constant is not a deviation.
    result.scale.push_back(deviation > 1e-6 * std::abs(mean) && deviation > 0 ? static_cast<float>(1 / deviation)
                                                                              : 0.0F);
  }
  return result;
}

void apply(const Standardisation& standardisation, FeatureTable& table) {
  // Far outliers, such as a byte seen once in training and often in a test text, would decide everything.
  constexpr float kFarthest = 10.0F;
  for (std::size_t i = 0; i < table.examples(); ++i) {
    for (std::size_t f = 0; f < table.features(); ++f) {
      float& value = table.at(i, f);
      value = std::clamp((value - standardisation.mean[f]) * standardisation.scale[f], -kFarthest, kFarthest);
    }
  }
}

LogisticModel::LogisticModel(const FeatureTable& table, std::span<const std::int32_t> labels, std::size_t classes,
                             const LogisticOptions& options)
    : classes_(classes), weights_(classes * (table.features() + 1), 0.0) {
  minimise({table, labels, classes, options}, options.iterations, weights_);
}

std::vector<std::int32_t> LogisticModel::predict(const FeatureTable& table) const {
  std::vector<std::int32_t> result;
  std::vector<Block> scores(classes_);
  for (std::size_t block = 0; block < table.blocks(); ++block) {
    score(table, weights_, block, scores);
    for (std::size_t i = 0; i < kBlock && block * kBlock + i < table.examples(); ++i) {
      std::size_t best = 0;
      for (std::size_t c = 1; c < classes_; ++c) best = scores[c][i] > scores[best][i] ? c : best;
      result.push_back(static_cast<std::int32_t>(best));
    }
  }
  return result;
}

}  // namespace cosformer::data
