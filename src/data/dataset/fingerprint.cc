#include "data/dataset/fingerprint.h"

#include <algorithm>
#include <vector>

#include "base/formats/sha256.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kMostBytes = 32U << 20;
constexpr std::uint64_t kPlaces = 256, kTokensOfAPlace = 4096;

template <class Number>
void add_number(Sha256& hash, Number number) {
  hash.add(&number, sizeof number);
}

std::size_t bytes_of(const SequenceView& sequence) {
  return sequence.size * size_of(sequence.type);
}

}  // namespace

std::string fingerprint(const Dataset& dataset) {
  Sha256 hash;
  for (const std::string& name : dataset.info().classes) hash.add(name + '\n');
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const Example example = dataset.get(i);
    add_number(hash, example.label);
    add_number(hash, std::uint64_t{example.first.size});
    add_number(hash, std::uint64_t{example.second.size});
    bytes += bytes_of(example.first) + bytes_of(example.second);
  }
  const std::size_t step = bytes / kMostBytes + 1;
  for (std::size_t i = 0; i < dataset.size(); i += step) {
    const Example example = dataset.get(i);
    hash.add(example.first.data, bytes_of(example.first));
    hash.add(example.second.data, bytes_of(example.second));
  }
  return hexadecimal(hash.finish());
}

std::string fingerprint(const CorpusPart& part) {
  const TextCounts& counts = part.counts();
  Sha256 hash;
  for (const std::uint64_t count : {counts.documents, counts.tokens, counts.bytes, counts.words, counts.lines}) {
    add_number(hash, count);
  }
  const std::uint64_t step = std::max(kTokensOfAPlace, part.tokens() / kPlaces);
  std::vector<std::int32_t> tokens;
  for (std::uint64_t begin = 0; begin < part.tokens(); begin += step) {
    tokens.resize(std::min(kTokensOfAPlace, part.tokens() - begin));
    part.read(begin, tokens);
    hash.add(tokens.data(), tokens.size() * sizeof(std::int32_t));
  }
  return hexadecimal(hash.finish());
}

std::string fingerprint(const TaskData& task) {
  return fingerprint(*task.train) + fingerprint(*task.valid) + fingerprint(*task.test);
}

std::string fingerprint(const Corpus& corpus) {
  return fingerprint(corpus.train) + fingerprint(corpus.valid) + fingerprint(corpus.test);
}

}  // namespace cosformer::data
