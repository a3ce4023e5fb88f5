#include "data/baselines/text_to_text_floor.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cosformer::data {
namespace {

std::string_view bytes_of(const SequenceView& sequence) {
  return {static_cast<const char*>(sequence.data), sequence.size * size_of(sequence.type)};
}

// Of equally frequent ones the first by bytes, so that the rule does not depend on an order.
std::string most_frequent_target(const Dataset& train) {
  std::unordered_map<std::string, std::size_t> counts;
  for (std::size_t i = 0; i < train.size(); ++i) ++counts[std::string(bytes_of(train.get(i).second))];
  const auto best = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first > b.first;
  });
  return best == counts.end() ? "" : best->first;
}

}  // namespace

std::vector<Floor> text_to_text_floors(const Dataset& train, const Dataset& test) {
  const std::string frequent = most_frequent_target(train);
  std::size_t hits = 0, copies = 0;
  for (std::size_t i = 0; i < test.size(); ++i) {
    const Example example = test.get(i);
    hits += bytes_of(example.second) == frequent ? 1 : 0;
    copies += bytes_of(example.second) == bytes_of(example.first) ? 1 : 0;
  }
  const auto share = [&](std::size_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<std::size_t>(test.size(), 1));
  };
  return {{"the most frequent target", share(hits)}, {"the source as it is", share(copies)}};
}

}  // namespace cosformer::data
