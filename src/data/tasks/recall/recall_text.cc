#include "data/tasks/recall/recall_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "base/random.h"

namespace cosformer::data {
namespace {

// Of the places of queries: their density falls with the distance from the pairs to this power.
constexpr double kPower = -0.9;

// Of the ranges 1, 2, 3-4, 5-8, … those that are allowed are equally likely, and so are the numbers in a range: texts
// of few pairs are no rarity.
std::int64_t drawn_pairs(const RecallConfig& c, Random& random) {
  const auto range_of = [](std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n - 1)); };
  const int least = range_of(c.fewest_pairs()), most = range_of(c.pairs);
  const int range = least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  const std::int64_t first = std::max(range == 0 ? 1 : (std::int64_t{1} << (range - 1)) + 1, c.fewest_pairs());
  const std::int64_t last = std::min(std::int64_t{1} << range, c.pairs);
  return first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
}

// `count` different ones of 0 … bound − 1, in random order (Floyd's sampling).
std::vector<std::int64_t> drawn_without_repetition(std::int64_t bound, std::int64_t count, Random& random) {
  std::unordered_set<std::int64_t> taken;
  std::vector<std::int64_t> drawn;
  for (std::int64_t next = bound - count; next < bound; ++next) {
    const auto one = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(next + 1)));
    drawn.push_back(taken.insert(one).second ? one : next);
    if (drawn.back() == next) taken.insert(next);
  }
  shuffle(drawn, random);
  return drawn;
}

// `count` of the slots 0 … slots − 1 without repetition, a slot by (its number + 1)^power: those whose exponentially
// distributed waiting times are the shortest (Efraimidis & Spirakis 2006).
std::vector<std::int64_t> drawn_by_power(std::int64_t slots, std::int64_t count, Random& random) {
  std::vector<std::pair<double, std::int64_t>> waiting;
  waiting.reserve(static_cast<std::size_t>(slots));
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    waiting.emplace_back(-std::log1p(-random.unit()) / std::pow(static_cast<double>(slot + 1), kPower), slot);
  }
  std::nth_element(waiting.begin(), waiting.begin() + (count - 1), waiting.end());
  std::vector<std::int64_t> drawn;
  for (std::int64_t at = 0; at < count; ++at) drawn.push_back(waiting[static_cast<std::size_t>(at)].second);
  return drawn;
}

// First places of two tokens each. A text is cut in slots of two tokens, so that none meets another.
struct Places {
  std::vector<std::int64_t> pairs, queries;
};

Places drawn_places(const RecallConfig& c, std::int64_t pairs, std::int64_t queries, Random& random) {
  const std::int64_t slots = c.length / 2;
  Places places;
  if (c.needle) {
    places.pairs = drawn_without_repetition(slots - queries, pairs, random);
    for (std::int64_t at = slots - queries; at < slots; ++at) places.queries.push_back(at);
  } else {
    for (std::int64_t at = 0; at < pairs; ++at) places.pairs.push_back(at);
    places.queries = c.gaps == "uniform" ? drawn_without_repetition(slots - pairs, queries, random)
                                         : drawn_by_power(slots - pairs, queries, random);
    for (std::int64_t& at : places.queries) at += pairs;
  }
  std::sort(places.queries.begin(), places.queries.end());
  for (std::vector<std::int64_t>* all : {&places.pairs, &places.queries}) {
    for (std::int64_t& at : *all) at *= 2;
  }
  return places;
}

Random random_of(const RecallSeeds& seeds, RecallPart part, std::uint64_t number) {
  switch (part) {
    case RecallPart::kTrain:
      return {mix_bits(seeds.generate + mix_bits(seeds.training)), RandomStream::kRecallTrain, number};
    case RecallPart::kValid: return {seeds.generate, RandomStream::kRecallValid, number};
    case RecallPart::kTest: break;
  }
  return {seeds.generate, RandomStream::kRecallTest, number};
}

}  // namespace

std::int64_t queries_of(const RecallConfig& c, std::int64_t pairs) {
  return c.queries == 0 ? pairs : std::min(c.queries, pairs);
}

RecallText recall_text(const RecallConfig& c, const RecallSeeds& seeds, RecallPart part, std::uint64_t number) {
  Random random = random_of(seeds, part, number);
  RecallText text;
  text.pairs = drawn_pairs(c, random);
  const std::int64_t queries = queries_of(c, text.pairs);
  for (std::int64_t at = 0; at < c.length; ++at) {
    text.tokens.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(c.fillers))));
  }
  const Places places = drawn_places(c, text.pairs, queries, random);
  const std::vector<std::int64_t> keys = drawn_without_repetition(c.keys, text.pairs, random);
  std::vector<std::int32_t> values;
  const auto write = [&](std::int64_t place, std::size_t pair) {
    text.tokens[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(c.first_key() + keys[pair]);
    text.tokens[static_cast<std::size_t>(place) + 1] = values[pair];
  };
  for (std::size_t pair = 0; pair < keys.size(); ++pair) {
    const std::uint64_t value = random.below(static_cast<std::uint64_t>(c.values));
    values.push_back(static_cast<std::int32_t>(c.first_value() + static_cast<std::int64_t>(value)));
    write(places.pairs[pair], pair);
  }
  const std::vector<std::int64_t> asked = drawn_without_repetition(text.pairs, queries, random);
  for (std::size_t at = 0; at < asked.size(); ++at) {
    const auto pair = static_cast<std::size_t>(asked[at]);
    write(places.queries[at], pair);
    text.queries.push_back({places.queries[at], places.queries[at] - places.pairs[pair]});
  }
  return text;
}

LmBatch recall_batch(const std::vector<RecallText>& texts, std::vector<std::uint64_t> numbers) {
  LmBatch batch;
  batch.rows = static_cast<std::int64_t>(texts.size());
  batch.width = static_cast<std::int64_t>(texts.front().tokens.size());
  batch.offsets.push_back(0);
  for (const RecallText& text : texts) {
    const std::size_t begin = batch.targets.size();
    batch.inputs.insert(batch.inputs.end(), text.tokens.begin(), text.tokens.end());
    batch.targets.resize(batch.inputs.size(), kNoTarget);
    for (const RecallQuery& query : text.queries) {
      const auto place = static_cast<std::size_t>(query.place);
      batch.targets[begin + place] = text.tokens[place + 1];
    }
    batch.predictions += static_cast<std::int64_t>(text.queries.size());
    batch.offsets.push_back(static_cast<std::int32_t>(batch.inputs.size()));
    batch.carried.push_back(0);
  }
  batch.starts = std::move(numbers);
  return batch;
}

std::string in_words(const RecallText& text, const RecallConfig& c) {
  std::string words;
  for (const std::int32_t token : text.tokens) {
    const char kind = token < c.first_key() ? '.' : token < c.first_value() ? 'k' : 'v';
    const std::int64_t first = kind == '.' ? 0 : kind == 'k' ? c.first_key() : c.first_value();
    words += fmt::format("{}{}{}", words.empty() ? "" : " ", kind, token - first);
  }
  return words;
}

}  // namespace cosformer::data
