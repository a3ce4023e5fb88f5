// CorpusPart.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "data/corpus/corpus.h"
#include "data/corpus/corpus_cache.h"

namespace cosformer::data {

CorpusPart::CorpusPart(std::shared_ptr<const TokenCache> cache) : cache_(std::move(cache)) {
  add_run({}, {cache_->ends().size(), cache_->before(cache_->ends().size())});
}

CorpusPart::CorpusPart(std::shared_ptr<const TokenCache> cache, const TokenPlace& begin, const TokenPlace& end)
    : cache_(std::move(cache)) {
  add_run(begin, end);
}

CorpusPart::CorpusPart(std::shared_ptr<const TokenCache> cache, const std::vector<std::uint64_t>& segments)
    : cache_(std::move(cache)) {
  for (std::size_t i = 0; i < segments.size();) {
    std::size_t end = i + 1;
    while (end < segments.size() && segments[end] == segments[end - 1] + 1) ++end;
    const std::uint64_t behind = segments[end - 1] + 1;
    add_run({segments[i], cache_->before(segments[i])}, {behind, cache_->before(behind)});
    i = end;
  }
}

void CorpusPart::add_run(const TokenPlace& begin, const TokenPlace& end) {
  const TextCounts &before = begin.before, &after = end.before;
  if (begin.segment == end.segment && before.tokens == after.tokens) return;
  const bool ends_inside = end.segment < cache_->ends().size() && after.tokens > cache_->before(end.segment).tokens;
  runs_.push_back({counts_.tokens, before.tokens, begin.segment, end.segment + (ends_inside ? 1 : 0)});
  const bool begins_inside = before.tokens > cache_->before(begin.segment).tokens;
  counts_.documents += after.documents - before.documents;
  // What is left of a document counts as one.
  if (begins_inside || !cache_->begins_document(begin.segment)) ++counts_.documents;
  counts_.tokens += after.tokens - before.tokens;
  counts_.bytes += after.bytes - before.bytes;
  counts_.words += after.words - before.words;
  counts_.lines += after.lines - before.lines;
}

std::size_t CorpusPart::run_at(std::uint64_t place) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), place,
                                      [](std::uint64_t p, const Run& run) { return p < run.part_begin; });
  return static_cast<std::size_t>(after - runs_.begin()) - 1;
}

void CorpusPart::read(std::uint64_t begin, std::span<std::int32_t> destination) const {
  if (destination.empty()) return;
  if (begin > tokens() || destination.size() > tokens() - begin) {
    throw std::out_of_range(
        fmt::format("tokens {} to {} of a part with {}", begin, begin + destination.size(), tokens()));
  }
  for (std::size_t run = run_at(begin); !destination.empty(); ++run) {
    const std::uint64_t end = run + 1 < runs_.size() ? runs_[run + 1].part_begin : tokens();
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(destination.size(), end - begin));
    cache_->read(runs_[run].cache_begin + begin - runs_[run].part_begin, destination.first(taken));
    destination = destination.subspan(taken);
    begin += taken;
  }
}

void CorpusPart::document_starts(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& places) const {
  end = std::min(end, tokens());
  if (begin >= end) return;
  const std::span<const TextCounts> ends = cache_ ? cache_->ends() : std::span<const TextCounts>();
  for (std::size_t number = run_at(begin); number < runs_.size() && runs_[number].part_begin < end; ++number) {
    const Run& run = runs_[number];
    const auto place_of = [&](std::uint64_t segment) {
      return std::max(cache_->before(segment).tokens, run.cache_begin) - run.cache_begin + run.part_begin;
    };
    // The first segment that begins at or behind `begin`.
    std::uint64_t segment = run.first_segment;
    if (begin > run.part_begin) {
      const std::uint64_t wanted = begin - run.part_begin + run.cache_begin;
      const auto from = ends.begin() + static_cast<std::ptrdiff_t>(run.first_segment);
      const auto to = ends.begin() + static_cast<std::ptrdiff_t>(run.end_segment);
      const auto found = std::partition_point(from, to, [&](const TextCounts& e) { return e.tokens < wanted; });
      segment = static_cast<std::uint64_t>(found - ends.begin()) + 1;
    }
    for (; segment < run.end_segment && place_of(segment) < end; ++segment) {
      const bool starts = cache_->begins_document(segment) || segment == run.first_segment;
      // Segments without tokens (a document of white space, as words) begin where the next one does.
      if (starts && (places.empty() || places.back() != place_of(segment))) places.push_back(place_of(segment));
    }
  }
}

}  // namespace cosformer::data
