#include "data/baselines/lm_floor.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kTokensAtOnce = std::size_t{1} << 16;

// Calls `use(token before, token)` for the first `most` tokens.
template <typename Use>
void for_each_pair(const CorpusPart& part, std::uint64_t most, std::int32_t before, Use&& use) {
  std::vector<std::int32_t> tokens(kTokensAtOnce);
  const std::uint64_t end = std::min(part.tokens(), most);
  for (std::uint64_t begin = 0; begin < end; begin += kTokensAtOnce) {
    tokens.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kTokensAtOnce, end - begin)));
    part.read(begin, tokens);
    for (const std::int32_t token : tokens) {
      use(static_cast<std::size_t>(before), static_cast<std::size_t>(token));
      before = token;
    }
  }
}

}  // namespace

std::vector<LmFloor> lm_floors(const CorpusPart& train, const CorpusPart& test, const Tokenizer& tokenizer,
                               std::uint64_t most_tokens) {
  if (train.tokens() == 0 || test.tokens() == 0) throw UserError("there is no text to count tokens in");
  const auto vocabulary = static_cast<std::size_t>(tokenizer.vocabulary());
  std::vector<double> count(vocabulary), as_context(vocabulary), kinds(vocabulary);
  std::unordered_map<std::uint64_t, double> pairs;
  double total = 0;
  const auto key = [vocabulary](std::size_t before, std::size_t token) {
    return static_cast<std::uint64_t>(before) * vocabulary + token;
  };
  for_each_pair(train, most_tokens, tokenizer.end_of_document(), [&](std::size_t before, std::size_t token) {
    total += 1;
    count[token] += 1;
    as_context[before] += 1;
    double& pair = pairs[key(before, token)];
    if (pair == 0) kinds[before] += 1;
    pair += 1;
  });
  std::vector<LmFloor> floors{{"single tokens", 0}, {"pairs of tokens", 0}};
  for_each_pair(test, test.tokens(), tokenizer.end_of_document(), [&](std::size_t before, std::size_t token) {
    const double single = (count[token] + 1) / (total + static_cast<double>(vocabulary));
    const auto found = pairs.find(key(before, token));
    const double pair = found == pairs.end() ? 0 : found->second;
    const double divisor = as_context[before] + kinds[before];
    floors[0].nats -= std::log(single);
    floors[1].nats -= std::log(divisor == 0 ? single : (pair + kinds[before] * single) / divisor);
  });
  return floors;
}

}  // namespace cosformer::data
