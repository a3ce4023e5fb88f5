#include "data/baselines/word_regression.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kMostBins = std::size_t{1} << 18;
constexpr std::size_t kMostWeights = std::size_t{1} << 22;  // of all classes together
constexpr int kEpochs = 3;
constexpr float kRate = 0.1F;  // of AdaGrad
constexpr std::uint64_t kOrderSeed = 1;

constexpr std::uint64_t kHashStart = 0xcbf29ce484222325, kHashFactor = 0x100000001b3;  // FNV-1a

std::uint64_t with(std::uint64_t hash, unsigned char byte) {
  return (hash ^ byte) * kHashFactor;
}

bool is_letter(unsigned char c) {
  return c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

unsigned char lower(unsigned char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c + ('a' - 'A')) : c;
}

struct Feature {
  std::uint32_t bin;
  float value;
};

// Words are runs of letters and digits, without regard to case in ASCII; other marks are words of one byte.
class Features {
 public:
  Features(std::size_t bins, bool pairs) : bins_(bins), pairs_(pairs), rarity_(bins, 1.0F) {}

  // How rare each bin is among the examples becomes its weight.
  void measure_rarity(const Dataset& dataset, std::span<const std::size_t> examples) {
    std::vector<std::uint32_t> texts(bins_, 0);
    for (const std::size_t i : examples) {
      for (const Feature& feature : of(dataset.get(i))) ++texts[feature.bin];
    }
    for (std::size_t bin = 0; bin < bins_; ++bin) {
      rarity_[bin] = std::log(static_cast<float>(examples.size() + 1) / static_cast<float>(texts[bin] + 1)) + 1;
    }
  }

  // Each bin once, the values' squares adding up to 1. Valid until the next call.
  const std::vector<Feature>& of(const Example& example) {
    found_.clear();
    add(example.first, 1);
    if (pairs_) add(example.second, 2);
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    features_.clear();
    float squares = 0;
    for (const std::uint32_t bin : found_) {
      features_.push_back({bin, rarity_[bin]});
      squares += rarity_[bin] * rarity_[bin];
    }
    const float scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (Feature& feature : features_) feature.value *= scale;
    return features_;
  }

 private:
  void add(const SequenceView& text, unsigned char document) {
    const auto* bytes = static_cast<const unsigned char*>(text.data);
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < text.size;) {
      if (bytes[i] <= ' ') {
        ++i;
        continue;
      }
      std::uint64_t word = with(kHashStart, document);
      const std::size_t begin = i;
      while (i < text.size && is_letter(lower(bytes[i]))) word = with(word, lower(bytes[i++]));
      if (i == begin) word = with(word, bytes[i++]);
      add(word);
      if (before != 0) add((before * kHashFactor) ^ word);
      before = word;
    }
  }

  void add(std::uint64_t hash) { found_.push_back(static_cast<std::uint32_t>(mix_bits(hash) % bins_)); }

  std::size_t bins_;
  bool pairs_;
  std::vector<float> rarity_;
  std::vector<std::uint32_t> found_;
  std::vector<Feature> features_;
};

// A row of weights for each bin, so that what a feature touches lies together.
class Model {
 public:
  Model(std::size_t bins, std::size_t classes)
      : classes_(classes), weights_(bins * classes, 0.0F), squares_(bins * classes, 0.0F), constants_(classes, 0.0F) {}

  std::span<const float> scores(const std::vector<Feature>& features) {
    scores_ = constants_;
    for (const Feature& feature : features) {
      const float* row = weights_.data() + feature.bin * classes_;
      for (std::size_t c = 0; c < classes_; ++c) scores_[c] += row[c] * feature.value;
    }
    return scores_;
  }

  void learn(const std::vector<Feature>& features, std::int32_t label) {
    scores(features);
    const float most = *std::max_element(scores_.begin(), scores_.end());
    float sum = 0;
    for (float& score : scores_) sum += score = std::exp(score - most);
    for (float& score : scores_) score /= sum;
    scores_[static_cast<std::size_t>(label)] -= 1;  // the loss' gradient by the scores
    for (std::size_t c = 0; c < classes_; ++c) constants_[c] -= 0.01F * scores_[c];
    for (const Feature& feature : features) {
      for (std::size_t c = 0; c < classes_; ++c) {
        const std::size_t place = feature.bin * classes_ + c;
        const float gradient = scores_[c] * feature.value;
        squares_[place] += gradient * gradient;
        weights_[place] -= kRate * gradient / (std::sqrt(squares_[place]) + 1e-3F);
      }
    }
  }

 private:
  std::size_t classes_;
  std::vector<float> weights_, squares_, constants_, scores_;
};

}  // namespace

std::vector<std::int32_t> predict_by_words(const Dataset& train, std::span<const std::size_t> train_examples,
                                           const Dataset& test, std::span<const std::size_t> test_examples,
                                           std::size_t classes) {
  const std::size_t bins = std::max<std::size_t>(1024, std::min(kMostBins, kMostWeights / classes));
  Features features(bins, train.info().pairs);
  features.measure_rarity(train, train_examples);
  Model model(bins, classes);
  std::vector<std::size_t> order(train_examples.begin(), train_examples.end());
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Random random(kOrderSeed, RandomStream::kSplit, static_cast<std::uint64_t>(epoch));
    shuffle(order, random);
    for (const std::size_t i : order) model.learn(features.of(train.get(i)), train.label(i));
  }
  std::vector<std::int32_t> predicted;
  for (const std::size_t i : test_examples) {
    const std::span<const float> scores = model.scores(features.of(test.get(i)));
    predicted.push_back(static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
  }
  return predicted;
}

}  // namespace cosformer::data
