#include "serve/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"

namespace cosformer::serve {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void require(bool condition, const std::string& name, const std::string& expected, double got) {
  if (!condition) throw UserError(fmt::format("--{} must be {}; got {}", name, expected, significant(got)));
}

void penalize(std::vector<double>& logits, std::span<const std::int32_t> recent, double penalty) {
  if (penalty == 1) return;
  std::vector<bool> seen(logits.size());
  for (const std::int32_t id : recent) {
    const auto at = static_cast<std::size_t>(id);
    if (id < 0 || at >= logits.size() || seen[at]) continue;
    seen[at] = true;
    logits[at] = logits[at] > 0 ? logits[at] / penalty : logits[at] * penalty;
  }
}

// Ids with a probability, the likeliest first.
std::vector<std::size_t> ranked(const std::vector<double>& p) {
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < p.size(); ++at) {
    if (p[at] > 0) order.push_back(at);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
  return order;
}

void normalize(std::vector<double>& p) {
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
}

void keep_first(std::vector<double>& p, const std::vector<std::size_t>& order, std::size_t count) {
  for (std::size_t rank = count; rank < order.size(); ++rank) p[order[rank]] = 0;
  normalize(p);
}

}  // namespace

void SamplingOptions::require_possible() const {
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0, "repetition-penalty", "above 0",
          repetition_penalty);
  require(std::isfinite(temperature) && temperature >= 0, "temperature", "0 or above", temperature);
  require(top_k >= 0, "top-k", "0 or above", static_cast<double>(top_k));
  require(top_p > 0 && top_p <= 1, "top-p", "above 0 and at most 1", top_p);
  require(min_p >= 0 && min_p <= 1, "min-p", "from 0 to 1", min_p);
}

std::vector<double> next_token_probabilities(std::span<const float> logits, std::span<const std::int32_t> recent,
                                             std::span<const std::int32_t> forbidden, const SamplingOptions& o) {
  std::vector<double> p(logits.begin(), logits.end());
  const bool broken = std::any_of(p.begin(), p.end(), [](double x) { return std::isnan(x) || x == -kNever; });
  penalize(p, recent, o.repetition_penalty);
  for (const std::int32_t id : forbidden) p.at(static_cast<std::size_t>(id)) = kNever;
  const auto best = std::max_element(p.begin(), p.end());
  if (broken || best == p.end() || *best == kNever) {
    throw Failure("the model's output is not a number; its weights are damaged or its training has diverged");
  }
  if (o.temperature == 0) {
    const auto chosen = static_cast<std::size_t>(best - p.begin());
    std::fill(p.begin(), p.end(), 0.0);
    p[chosen] = 1;
    return p;
  }
  const double greatest = *best;
  for (double& x : p) x = std::exp((x - greatest) / o.temperature);
  normalize(p);
  if (o.top_k > 0) {
    const std::vector<std::size_t> order = ranked(p);
    keep_first(p, order, std::min(order.size(), static_cast<std::size_t>(o.top_k)));
  }
  if (o.top_p < 1) {
    const std::vector<std::size_t> order = ranked(p);
    double sum = 0;
    std::size_t count = 0;
    while (count < order.size() && sum < o.top_p) sum += p[order[count++]];
    keep_first(p, order, count);
  }
  if (o.min_p > 0) {
    const double least = o.min_p * *std::max_element(p.begin(), p.end());
    for (double& x : p) x = x >= least ? x : 0;
    normalize(p);
  }
  return p;
}

std::int32_t choose(std::span<const double> probabilities, double unit) {
  double sum = 0;
  std::int32_t last = 0;
  for (std::size_t at = 0; at < probabilities.size(); ++at) {
    if (probabilities[at] <= 0) continue;
    sum += probabilities[at];
    last = static_cast<std::int32_t>(at);
    if (sum > unit) return last;
  }
  return last;  // rounding left the sum below `unit`
}

}  // namespace cosformer::serve
