// Multinomial logistic regression on dense features, small and deterministic: for floors, not for models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cosformer::data {

// Examples in blocks, and in a block feature by feature, so that the innermost loops run over examples.
class FeatureTable {
 public:
  static constexpr std::size_t kBlock = 256;

  FeatureTable(std::size_t examples, std::size_t features);

  std::size_t examples() const { return examples_; }
  std::size_t features() const { return features_; }
  std::size_t blocks() const { return (examples_ + kBlock - 1) / kBlock; }
  float& at(std::size_t example, std::size_t feature) { return values_[place(example, feature)]; }
  float at(std::size_t example, std::size_t feature) const { return values_[place(example, feature)]; }
  // kBlock values of one feature; those past the last example are 0.
  const float* column(std::size_t block, std::size_t feature) const {
    return values_.data() + (block * features_ + feature) * kBlock;
  }

 private:
  std::size_t place(std::size_t example, std::size_t feature) const {
    return (example / kBlock * features_ + feature) * kBlock + example % kBlock;
  }
  std::size_t examples_, features_;
  std::vector<float> values_;
};

// Mean and deviation of each feature, to bring it to 0 and 1; one that never changes becomes 0.
struct Standardisation {
  std::vector<float> mean, scale;
};
Standardisation measure(const FeatureTable& table);
void apply(const Standardisation& standardisation, FeatureTable& table);

struct LogisticOptions {
  int iterations = 200;
  double weight_penalty = 1e-4;  // half of it times the squared weights is added to the mean loss
  unsigned threads = 0;
};

class LogisticModel {
 public:
  // labels[i] < classes. Minimises by L-BFGS on all examples at once.
  LogisticModel(const FeatureTable& table, std::span<const std::int32_t> labels, std::size_t classes,
                const LogisticOptions& options = {});

  // The likeliest class of each example.
  std::vector<std::int32_t> predict(const FeatureTable& table) const;

  // Of a feature; the one past the last is the constant.
  double weight(std::size_t of_class, std::size_t feature) const {
    return weights_[of_class * (weights_.size() / classes_) + feature];
  }

 private:
  std::size_t classes_;
  std::vector<double> weights_;  // for each class the features' weights and a constant
};

}  // namespace cosformer::data
