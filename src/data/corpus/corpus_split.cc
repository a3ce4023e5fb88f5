#include "data/corpus/corpus_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"
#include "base/table.h"
#include "data/corpus/corpus_cut.h"

namespace cosformer::data {
namespace {

constexpr std::uint64_t kManyDocuments = 100;
// How far a part may be from what was asked for, before another way is taken.
constexpr double kNearByDocuments = 2, kNearBySegments = 0.25;
constexpr std::uint64_t kSlack = 10;        // a cut is moved by one of so many pieces of the smallest part
constexpr std::uint64_t kLeastTokens = 16;  // fewer tell nothing

enum Part : std::uint8_t { kTrain, kValid, kTest };

struct Shares {
  double valid = 0, test = 0;
};

std::string percent(double fraction) {
  return significant(100 * fraction) + "%";
}

// Of documents drawn by the seed.
std::vector<Part> draw_documents(const TokenCache& cache, const Shares& shares, std::uint64_t seed) {
  std::vector<std::uint64_t> tokens;  // of each document
  for (std::uint64_t segment = 0; segment < cache.ends().size(); ++segment) {
    if (cache.begins_document(segment)) tokens.push_back(0);
    tokens.back() += cache.ends()[segment].tokens - cache.before(segment).tokens;
  }
  std::vector<std::uint64_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, RandomStream::kCorpusSplit, 0);
  shuffle(order, random);
  std::vector<Part> documents(tokens.size(), kTrain);
  std::size_t next = 0;
  for (const auto& [part, fraction] : {std::pair{kTest, shares.test}, std::pair{kValid, shares.valid}}) {
    std::uint64_t taken = 0;
    while (fraction > 0 && next + 1 < order.size() &&
           (taken == 0 || static_cast<double>(taken) < fraction * static_cast<double>(cache.tokens()))) {
      documents[order[next]] = part;
      taken += tokens[order[next++]];
    }
  }
  std::vector<Part> parts;
  for (const TextCounts& end : cache.ends()) parts.push_back(documents[static_cast<std::size_t>(end.documents - 1)]);
  return parts;
}

// The end of the text, cut between segments.
std::vector<Part> end_of_segments(const TokenCache& cache, const Shares& shares) {
  const auto total = static_cast<double>(cache.tokens());
  const double valid_begin = total * (1 - shares.valid - shares.test), test_begin = total * (1 - shares.test);
  std::vector<Part> parts(cache.ends().size(), kTrain);
  for (std::uint64_t segment = 0; segment < parts.size(); ++segment) {
    const auto place = static_cast<double>(cache.before(segment).tokens);
    parts[segment] = shares.test > 0 && place >= test_begin     ? kTest
                     : shares.valid > 0 && place >= valid_begin ? kValid
                                                                : kTrain;
  }
  return parts;
}

SplitParts of_segments(const std::shared_ptr<const TokenCache>& cache, const std::vector<Part>& parts) {
  std::vector<std::uint64_t> segments[3];
  for (std::uint64_t segment = 0; segment < parts.size(); ++segment) segments[parts[segment]].push_back(segment);
  return {CorpusPart(cache, segments[kTrain]), CorpusPart(cache, segments[kValid]), CorpusPart(cache, segments[kTest]),
          ""};
}

// The end of the text, cut at any token; a cut moves by a tenth of the smallest part at most.
SplitParts end_of_tokens(const std::shared_ptr<const TokenCache>& cache, const Tokenizer& tokenizer,
                         const Shares& shares) {
  const auto total = static_cast<double>(cache->tokens());
  const auto valid = static_cast<std::uint64_t>(std::llround(shares.valid * total));
  const auto test = static_cast<std::uint64_t>(std::llround(shares.test * total));
  const bool too_short = (shares.valid > 0 && valid < kLeastTokens) || (shares.test > 0 && test < kLeastTokens) ||
                         valid + test >= cache->tokens();
  if (too_short) {
    throw UserError(fmt::format(
        "the text of {} tokens is too short to hold a part of it out (validation: {}, test: {}); give more text, a "
        "larger share (data.valid_fraction, data.test_fraction), or files of their own for validation and test",
        with_commas(static_cast<long long>(cache->tokens())), percent(shares.valid), percent(shares.test)));
  }
  std::uint64_t least = cache->tokens() - valid - test;
  for (const std::uint64_t part : {valid, test}) least = part > 0 ? std::min(least, part) : least;
  const TokenPlace end{cache->ends().size(), cache->ends().back()};
  const auto cut = [&](std::uint64_t behind) {
    return behind == 0 ? end : place_to_cut(*cache, tokenizer, cache->tokens() - behind, least / kSlack);
  };
  const TokenPlace test_begin = cut(test), valid_begin = valid > 0 ? cut(valid + test) : test_begin;
  return {CorpusPart(cache, {}, valid_begin), CorpusPart(cache, valid_begin, test_begin),
          CorpusPart(cache, test_begin, end), ""};
}

// Whether each part is at least `least` and at most `most` times as large as was asked for, and something is left.
bool near_enough(const SplitParts& parts, const Shares& shares, double total, double least, double most) {
  const auto is_near = [&](const CorpusPart& part, double share) {
    const auto tokens = static_cast<double>(part.tokens());
    return share == 0 || (tokens >= least * share * total && tokens <= most * share * total);
  };
  return parts.train.tokens() > 0 && is_near(parts.valid, shares.valid) && is_near(parts.test, shares.test);
}

SplitParts split(const std::shared_ptr<const TokenCache>& cache, const Tokenizer& tokenizer, const Shares& shares,
                 std::uint64_t seed) {
  const auto total = static_cast<double>(cache->tokens());
  if (cache->ends().back().documents >= kManyDocuments) {
    SplitParts parts = of_segments(cache, draw_documents(*cache, shares, seed));
    parts.how = fmt::format("documents drawn with seed {}", seed);
    if (near_enough(parts, shares, total, 1 / kNearByDocuments, kNearByDocuments)) return parts;
  }
  SplitParts parts = of_segments(cache, end_of_segments(*cache, shares));
  if (!near_enough(parts, shares, total, 1 - kNearBySegments, 1 + kNearBySegments)) {
    parts = end_of_tokens(cache, tokenizer, shares);
  }
  parts.how = "the end of the text";
  return parts;
}

}  // namespace

SplitParts split_cache(const std::shared_ptr<const TokenCache>& cache, const Tokenizer& tokenizer,
                       double valid_fraction, double test_fraction, std::uint64_t seed) {
  if (valid_fraction == 0 && test_fraction == 0) return {CorpusPart(cache), {}, {}, ""};
  SplitParts result = split(cache, tokenizer, {valid_fraction, test_fraction}, seed);
  const auto total = static_cast<double>(cache->tokens());
  const auto share = [&](const CorpusPart& part) { return percent(static_cast<double>(part.tokens()) / total); };
  if (test_fraction > 0) result.how = fmt::format("test: {}, {}", share(result.test), result.how);
  if (valid_fraction > 0) result.how = fmt::format("validation: {}, {}", share(result.valid), result.how);
  return result;
}

}  // namespace cosformer::data
