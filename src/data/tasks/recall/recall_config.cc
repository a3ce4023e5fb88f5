#include "data/tasks/recall/recall_config.h"

#include <fmt/core.h>

#include "base/error.h"
#include "data/tasks/recall/recall_text.h"

namespace cosformer::data {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 20, kMostTokens = std::int64_t{1} << 24;

}  // namespace

void add_settings(Settings& s, RecallConfig& c) {
  s.add("recall.pairs", c.pairs, "A text of recall has at most this many pairs of a key and its value.", 1, kMostPairs);
  s.add("recall.least_pairs", c.least_pairs,
        "A text of recall has at least this many pairs, texts of few and of many being equally frequent; 0: all have "
        "recall.pairs.",
        0, kMostPairs);
  s.add("recall.queries", c.queries,
        "A text of recall asks for the values of this many of its pairs, of none twice; 0: for all.", 0, kMostPairs);
  s.add("recall.length", c.length, "A text of recall has this many tokens, with fillers where no pair or query is.", 4,
        std::int64_t{1} << 26);
  s.add("recall.keys", c.keys, "The keys of recall are drawn from this many tokens, in a text each once.", 1,
        kMostTokens);
  s.add("recall.values", c.values, "The values of recall are drawn from this many tokens.", 2, kMostTokens);
  s.add("recall.fillers", c.fillers, "The fillers of recall are drawn from this many tokens.", 1, kMostTokens);
  s.add("recall.gaps", c.gaps,
        "The queries of recall lie anywhere behind the pairs (uniform), or mostly soon behind them (power: of a place, "
        "by its distance to the power of -0.9).",
        {"power", "uniform"});
  s.add("recall.needle", c.needle,
        "The pairs of recall are hidden anywhere among the fillers and the queries are at the end; otherwise the pairs "
        "begin the text.");
}

void require_possible(const RecallConfig& c) {
  if (c.fewest_pairs() > c.pairs) {
    throw UserError(
        fmt::format("settings: recall.least_pairs ({}) must not exceed recall.pairs ({})", c.least_pairs, c.pairs));
  }
  if (c.keys < c.pairs) {
    throw UserError(fmt::format(
        "settings: recall.keys ({}) must not be below recall.pairs ({}): no key is in a text twice", c.keys, c.pairs));
  }
  const std::int64_t queries = queries_of(c, c.pairs);
  const std::int64_t needed = 2 * (c.pairs + queries);
  if (c.length < needed) {
    throw UserError(
        fmt::format("settings: recall.length ({}) must be at least {}: {} pairs and {} queries of two tokens each",
                    c.length, needed, c.pairs, queries));
  }
}

std::string describe(const RecallConfig& c) {
  const std::string number =
      c.fewest_pairs() == c.pairs ? fmt::format("{}", c.pairs) : fmt::format("{} to {}", c.fewest_pairs(), c.pairs);
  const std::string place = c.needle ? "anywhere among fillers, queries at the end"
                                     : fmt::format("then queries at {} gaps", c.gaps == "power" ? "power-law" : c.gaps);
  return fmt::format("{} pairs of {} keys and {} values, {}; {} tokens", number, c.keys, c.values, place, c.length);
}

}  // namespace cosformer::data
