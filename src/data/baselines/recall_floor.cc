#include "data/baselines/recall_floor.h"

#include <algorithm>
#include <map>

namespace cosformer::data {
namespace {

struct Sums {
  double queries = 0, last = 0, drawn = 0;
};

// The pairs' values, how often each is there: every value of the text but those behind queries.
std::map<std::int32_t, std::int64_t> values_of_pairs(const RecallText& text, std::int32_t first_value) {
  std::map<std::int32_t, std::int64_t> counts;
  for (const std::int32_t token : text.tokens) {
    if (token >= first_value) ++counts[token];
  }
  for (const RecallQuery& query : text.queries) --counts[text.tokens[static_cast<std::size_t>(query.place) + 1]];
  return counts;
}

void add(const RecallText& text, std::int32_t first_value, Sums& sums) {
  std::map<std::int32_t, std::int64_t> counts = values_of_pairs(text, first_value);
  for (const RecallQuery& query : text.queries) {
    const auto place = static_cast<std::size_t>(query.place);
    const std::int32_t wanted = text.tokens[place + 1];
    std::size_t last = place;
    while (last > 0 && text.tokens[last] < first_value) --last;
    sums.queries += 1;
    sums.last += text.tokens[last] == wanted ? 1 : 0;
    sums.drawn += static_cast<double>(counts[wanted]) / static_cast<double>(text.pairs);
  }
}

}  // namespace

std::vector<Floor> recall_floors(const RecallConfig& config, const RecallSeeds& seeds, RecallPart part,
                                 std::uint64_t count) {
  Sums sums;
  for (std::uint64_t number = 0; number < count; ++number) {
    add(recall_text(config, seeds, part, number), static_cast<std::int32_t>(config.first_value()), sums);
  }
  const double queries = std::max(sums.queries, 1.0);
  return {{"any value", 1 / static_cast<double>(config.values)},
          {"the last value", sums.last / queries},
          {"a value of the text", sums.drawn / queries}};
}

}  // namespace cosformer::data
