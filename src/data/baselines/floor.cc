#include "data/baselines/floor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>

#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"
#include "data/baselines/logistic_regression.h"
#include "data/baselines/word_regression.h"
#include "data/tokenizers/tokenized_text.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kValueBins = 32;
constexpr std::int64_t kMostSymbols = 1024;  // of larger vocabularies, several tokens share a bin
constexpr std::uint64_t kSampleSeed = 1;

// The labelled examples of a data set, at most `most` of them.
struct Part {
  const Dataset& dataset;
  std::vector<std::size_t> examples;
  std::vector<std::int32_t> labels;

  Part(const Dataset& whole, std::size_t most, const char* name) : dataset(whole) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole.label(i) != kNoLabel) examples.push_back(i);
    }
    if (examples.empty()) {
      throw UserError(fmt::format("the {} part has no example with a label; floors need some", name));
    }
    if (examples.size() > most) {
      Random random(kSampleSeed, RandomStream::kSplit, 0);
      shuffle(examples, random);
      examples.resize(most);
      std::sort(examples.begin(), examples.end());
    }
    for (const std::size_t i : examples) labels.push_back(whole.label(i));
  }
};

double accuracy_of(const std::vector<std::int32_t>& predicted, const std::vector<std::int32_t>& labels) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

std::int32_t most_frequent(const std::vector<std::size_t>& counts) {
  return static_cast<std::int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

std::int32_t most_frequent(const std::vector<std::int32_t>& labels, std::size_t classes) {
  std::vector<std::size_t> counts(classes, 0);
  for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  return most_frequent(counts);
}

std::int32_t first_token(const Dataset& dataset, std::size_t index) {
  std::int32_t token = kPadToken;
  const SequenceView sequence = dataset.get(index).first;
  sequence.copy_token_ids(std::min<std::size_t>(sequence.size, 1), &token);
  return token;
}

double accuracy_by_first_token(const Part& train, const Part& test, std::size_t classes) {
  std::map<std::int32_t, std::vector<std::size_t>> counts;
  for (std::size_t i = 0; i < train.examples.size(); ++i) {
    auto& of_token = counts[first_token(train.dataset, train.examples[i])];
    of_token.resize(classes);
    ++of_token[static_cast<std::size_t>(train.labels[i])];
  }
  const std::int32_t otherwise = most_frequent(train.labels, classes);
  std::vector<std::int32_t> predicted;
  for (const std::size_t i : test.examples) {
    const auto found = counts.find(first_token(test.dataset, i));
    predicted.push_back(found == counts.end() ? otherwise : most_frequent(found->second));
  }
  return accuracy_of(predicted, test.labels);
}

// Which bin an element falls into.
class Bins {
 public:
  explicit Bins(const Part& train) : tokens_(train.dataset.info().content == Content::kTokens) {
    const DatasetInfo& info = train.dataset.info();
    scale_ = info.value_scale;
    if (tokens_) {
      count_ = static_cast<std::size_t>(std::min(info.vocabulary, kMostSymbols));
      return;
    }
    count_ = kValueBins;
    least_ = std::numeric_limits<float>::max();
    float most = std::numeric_limits<float>::lowest();
    std::vector<float> values;
    for (const std::size_t i : train.examples) {
      read_values(train.dataset.get(i).first, values);
      for (const float value : values) {
        least_ = std::min(least_, value);
        most = std::max(most, value);
      }
    }
    per_value_ = most > least_ ? static_cast<float>(kValueBins) / (most - least_) : 0.0F;
  }

  std::size_t count() const { return count_; }

  // The parts of the sequence in each bin; all 0 for an empty one.
  void histogram(const SequenceView& sequence, std::span<float> parts) {
    std::fill(parts.begin(), parts.end(), 0.0F);
    const float share = 1.0F / static_cast<float>(std::max<std::size_t>(sequence.size, 1));
    if (tokens_) {
      ids_.resize(sequence.size);
      sequence.copy_token_ids(sequence.size, ids_.data());
      for (const std::int32_t id : ids_) parts[static_cast<std::size_t>(id) % count_] += 1.0F;
    } else {
      read_values(sequence, values_);
      for (const float value : values_) {
        const float bin = std::clamp((value - least_) * per_value_, 0.0F, static_cast<float>(kValueBins - 1));
        parts[static_cast<std::size_t>(bin)] += 1.0F;
      }
    }
    for (float& part : parts) part *= share;
  }

 private:
  void read_values(const SequenceView& sequence, std::vector<float>& values) const {
    values.resize(sequence.size);
    sequence.copy_values(sequence.size, scale_, values.data());
  }

  bool tokens_;
  std::size_t count_ = 0;
  float scale_ = 1, least_ = 0, per_value_ = 0;
  std::vector<std::int32_t> ids_;
  std::vector<float> values_;
};

FeatureTable features_of(const Part& part, Bins& bins) {
  const std::size_t own = bins.count() + 1;  // of one document: the histogram and the length
  const bool pairs = part.dataset.info().pairs;
  FeatureTable table(part.examples.size(), pairs ? 3 * own : own);
  std::vector<float> first(own), second(own);
  const auto describe = [&](const SequenceView& sequence, std::vector<float>& features) {
    bins.histogram(sequence, std::span(features).first(own - 1));
    features[own - 1] = std::log1p(static_cast<float>(sequence.size));
  };
  for (std::size_t i = 0; i < part.examples.size(); ++i) {
    const Example example = part.dataset.get(part.examples[i]);
    describe(example.first, first);
    for (std::size_t f = 0; f < own; ++f) table.at(i, f) = first[f];
    if (!pairs) continue;
    describe(example.second, second);
    for (std::size_t f = 0; f < own; ++f) {
      table.at(i, own + f) = second[f];
      table.at(i, 2 * own + f) = std::abs(first[f] - second[f]);
    }
  }
  return table;
}

double accuracy_by_regression(const Part& train, const Part& test, std::size_t classes, const FloorOptions& options) {
  Bins bins(train);
  FeatureTable train_table = features_of(train, bins), test_table = features_of(test, bins);
  const Standardisation standardisation = measure(train_table);
  apply(standardisation, train_table);
  apply(standardisation, test_table);
  LogisticOptions logistic;
  logistic.iterations = options.iterations;
  logistic.threads = options.threads;
  const LogisticModel model(train_table, train.labels, classes, logistic);
  return accuracy_of(model.predict(test_table), test.labels);
}

}  // namespace

std::vector<Floor> floors(const Dataset& train, const Dataset& test, const FloorOptions& options) {
  const Part train_part(train, options.most_examples, "training"), test_part(test, test.size(), "test");
  const DatasetInfo& info = train.info();
  const std::size_t classes = info.classes.size();
  std::vector<Floor> result;
  const std::vector<std::int32_t> constant(test_part.labels.size(), most_frequent(train_part.labels, classes));
  result.push_back({"most frequent class", accuracy_of(constant, test_part.labels)});
  if (info.content == Content::kTokens) {
    result.push_back(
        {"most frequent class given the first token", accuracy_by_first_token(train_part, test_part, classes)});
  }
  const std::string what = info.content == Content::kTokens ? "token" : "value";
  result.push_back({fmt::format("logistic regression on the {} histogram{} and length", what, info.pairs ? "s" : ""),
                    accuracy_by_regression(train_part, test_part, classes, options)});
  if (is_text(train)) {
    const auto predicted = predict_by_words(train, train_part.examples, test, test_part.examples, classes);
    result.push_back({"logistic regression on words and pairs of words", accuracy_of(predicted, test_part.labels)});
  }
  return result;
}

}  // namespace cosformer::data
