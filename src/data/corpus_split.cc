#include "data/corpus_split.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/table.h"
#include "data/random.h"

namespace cosformer::data {
namespace {

constexpr std::uint64_t kManyDocuments = 100;

enum Part : std::uint8_t { kTrain, kValid, kTest };

std::string percent(double fraction) {
  return significant(100 * fraction) + "%";
}

// A part for each document.
std::vector<Part> draw_documents(const TokenCache& cache, double valid_fraction, double test_fraction,
                                 std::uint64_t seed) {
  std::vector<std::uint64_t> tokens;  // of each document
  for (std::uint64_t segment = 0; segment < cache.ends().size(); ++segment) {
    if (cache.begins_document(segment)) tokens.push_back(0);
    tokens.back() += cache.ends()[segment].tokens - cache.before(segment).tokens;
  }
  std::vector<std::uint64_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, RandomStream::kCorpusSplit, 0);
  shuffle(order, random);
  std::vector<Part> parts(tokens.size(), kTrain);
  std::size_t next = 0;
  for (const auto& [part, fraction] : {std::pair{kTest, test_fraction}, std::pair{kValid, valid_fraction}}) {
    std::uint64_t taken = 0;
    while (fraction > 0 && next + 1 < order.size() &&
           (taken == 0 || static_cast<double>(taken) < fraction * static_cast<double>(cache.tokens()))) {
      parts[order[next]] = part;
      taken += tokens[order[next++]];
    }
  }
  return parts;
}

}  // namespace

SplitParts split_cache(const std::shared_ptr<const TokenCache>& cache, double valid_fraction, double test_fraction,
                       std::uint64_t seed) {
  if (valid_fraction == 0 && test_fraction == 0) return {CorpusPart(cache), {}, {}, ""};
  const std::span<const TextCounts> ends = cache->ends();
  std::vector<std::uint64_t> segments[3];
  std::string how;
  const std::uint64_t documents = ends.empty() ? 0 : ends.back().documents;
  if (documents >= kManyDocuments) {
    const std::vector<Part> parts = draw_documents(*cache, valid_fraction, test_fraction, seed);
    for (std::uint64_t segment = 0; segment < ends.size(); ++segment) {
      segments[parts[static_cast<std::size_t>(ends[segment].documents - 1)]].push_back(segment);
    }
    how = "documents drawn with seed " + std::to_string(seed);
  } else {
    const auto total = static_cast<double>(cache->tokens());
    const double valid_begin = total * (1 - valid_fraction - test_fraction), test_begin = total * (1 - test_fraction);
    for (std::uint64_t segment = 0; segment < ends.size(); ++segment) {
      const auto place = static_cast<double>(cache->before(segment).tokens);
      const Part part = test_fraction > 0 && place >= test_begin     ? kTest
                        : valid_fraction > 0 && place >= valid_begin ? kValid
                                                                     : kTrain;
      segments[part].push_back(segment);
    }
    how = "the end of the text";
  }
  SplitParts result{CorpusPart(cache, segments[kTrain]), CorpusPart(cache, segments[kValid]),
                    CorpusPart(cache, segments[kTest]), ""};
  if (result.train.tokens() == 0 || (valid_fraction > 0 && result.valid.tokens() == 0) ||
      (test_fraction > 0 && result.test.tokens() == 0)) {
    throw UserError("the text of " + std::to_string(cache->tokens()) +
                    " tokens is too short to hold a part of it out; give more text, a larger share, or files of their "
                    "own for validation and test");
  }
  if (valid_fraction > 0) result.how = "validation: " + percent(valid_fraction) + ", ";
  if (test_fraction > 0) result.how += "test: " + percent(test_fraction) + ", ";
  result.how += how;
  return result;
}

}  // namespace cosformer::data
