#include "data/corpus/corpus_cut.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/formats/white_space.h"

namespace cosformer::data {
namespace {

enum Quality { kAnywhere, kCharacter, kWord, kLine };

// Of a cut between two tokens' texts.
Quality quality_of(std::string_view before, std::string_view behind) {
  if (before.ends_with('\n')) return kLine;
  if (!before.empty() && is_space(before.back())) return kWord;
  // Pieces bring the blank before a word along.
  if (!behind.empty() && is_space(behind.front())) return kWord;
  const bool inside = !behind.empty() && (static_cast<unsigned char>(behind.front()) & 0xc0) == 0x80;
  return inside ? kAnywhere : kCharacter;
}

std::vector<std::int32_t> tokens_of(const TokenCache& cache, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(end - begin));
  cache.read(begin, ids);
  return ids;
}

std::vector<std::string> texts_of(const std::vector<std::int32_t>& ids, const Tokenizer& tokenizer) {
  std::vector<std::string> texts(ids.size());
  std::int32_t previous = Tokenizer::kNothing;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    tokenizer.append_text(ids[i], previous, texts[i]);
    previous = ids[i];
  }
  return texts;
}

TextCounts counts_of(std::string_view text, char before) {
  TextCounts counts;
  counts.bytes = text.size();
  for (const char c : text) {
    counts.words += is_space(before) && !is_space(c);
    counts.lines += c == '\n';
    before = c;
  }
  return counts;
}

// The place in a segment behind `tokens` of the cache. What the tokens' text counts is taken as it is where the
// tokenizer gives the text back, and in proportion where it does not.
TokenPlace place_inside(const TokenCache& cache, const Tokenizer& tokenizer, std::uint64_t segment,
                        std::uint64_t tokens) {
  const TextCounts before = cache.before(segment), after = cache.ends()[segment];
  TokenPlace place{segment, before};
  if (tokens == before.tokens) return place;
  const std::vector<std::string> texts = texts_of(tokens_of(cache, before.tokens, after.tokens), tokenizer);
  std::string whole;
  std::size_t part = 0;  // of it, in bytes
  for (std::size_t i = 0; i < texts.size(); ++i) {
    whole += texts[i];
    if (i + 1 == tokens - before.tokens) part = whole.size();
  }
  char byte_before = '\n';
  if (!cache.begins_document(segment)) {
    const std::string text = texts_of(tokens_of(cache, before.tokens - 1, before.tokens), tokenizer).front();
    if (!text.empty()) byte_before = text.back();
  }
  const TextCounts all = counts_of(whole, byte_before);
  const TextCounts some = counts_of(std::string_view(whole).substr(0, part), byte_before);
  const auto share = [](std::uint64_t of, std::uint64_t some, std::uint64_t all) {
    if (of == all) return some;
    if (all == 0) return std::uint64_t{0};
    const double part = static_cast<double>(some) / static_cast<double>(all);
    return std::min(of, static_cast<std::uint64_t>(std::llround(part * static_cast<double>(of))));
  };
  place.before.tokens = tokens;
  place.before.documents = after.documents;  // one is counted where it begins
  place.before.bytes += share(after.bytes - before.bytes, some.bytes, all.bytes);
  place.before.words += share(after.words - before.words, some.words, all.words);
  place.before.lines += share(after.lines - before.lines, some.lines, all.lines);
  return place;
}

}  // namespace

TokenPlace place_to_cut(const TokenCache& cache, const Tokenizer& tokenizer, std::uint64_t wanted,
                        std::uint64_t slack) {
  const std::uint64_t first = wanted - std::min(slack, wanted - 1);
  const std::uint64_t last = std::min(wanted + slack, cache.tokens() - 1);
  const std::vector<std::int32_t> ids = tokens_of(cache, first - 1, last + 1);
  const std::vector<std::string> texts = texts_of(ids, tokenizer);
  std::uint64_t best = wanted;
  Quality quality = kAnywhere;
  const auto distance = [&](std::uint64_t place) { return place > wanted ? place - wanted : wanted - place; };
  for (std::uint64_t place = first; place <= last; ++place) {
    const auto at = static_cast<std::size_t>(place - first);
    const bool ends_document = ids[at] == tokenizer.end_of_document();
    const Quality q = ends_document ? kLine : quality_of(texts[at], texts[at + 1]);
    if (q > quality || (q == quality && distance(place) < distance(best))) {
      best = place;
      quality = q;
    }
  }
  const std::span<const TextCounts> ends = cache.ends();
  const auto found =
      std::partition_point(ends.begin(), ends.end(), [&](const TextCounts& e) { return e.tokens <= best; });
  return place_inside(cache, tokenizer, static_cast<std::uint64_t>(found - ends.begin()), best);
}

}  // namespace cosformer::data
