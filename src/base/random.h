// Random numbers that are a pure function of (seed, stream, index): example 7 is the same whichever thread draws it and
// whatever was drawn before. Not for secrets. The results of the standard library's distributions differ between its
// implementations, so those used here are our own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cosformer {

// Spreads every input bit over the output (the finaliser of SplitMix64).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// What a sequence of random numbers is for: streams of one seed are independent of each other.
enum class RandomStream : std::uint64_t {
  kListOps = 1,
  kPathfinder,
  kPathfinderLabel,
  kExampleOrder,
  kBatchOrder,
  kSplit,
  kArticles,
  kPassages,
  kTokenizerText,
  kCorpusSplit,
  kWindowOrder,
  kWindowShift,
  kMasking,
  kGeneration,
  kRecallTrain,
  kRecallValid,
  kRecallTest
};

class Random {
 public:
  Random(std::uint64_t seed, RandomStream stream, std::uint64_t index)
      : state_(
            mix_bits(mix_bits(mix_bits(seed + kStep) + static_cast<std::uint64_t>(stream) * kStep) + index * kStep)) {}

  std::uint64_t next() { return mix_bits(state_ += kStep); }

  // Uniform in [0, bound), without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t unfair = (0 - bound) % bound;  // so many of the 2^64 values have to be drawn again
    for (;;) {
      const unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
      if (static_cast<std::uint64_t>(product) >= unfair) return static_cast<std::uint64_t>(product >> 64);
    }
  }

  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  std::uint64_t state_;
};

template <typename Items>
void shuffle(Items& items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left) {
    using std::swap;
    swap(items[left - 1], items[static_cast<std::size_t>(random.below(left))]);
  }
}

}  // namespace cosformer
