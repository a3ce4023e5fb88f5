#include "data/dataset/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"

namespace cosformer::data {
namespace {

class Subset : public Dataset {
 public:
  Subset(DatasetPointer whole, std::vector<std::size_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {
    for (const std::size_t index : indices_) {
      if (index >= whole_->size()) throw std::out_of_range(fmt::format("example {} is not in the data", index));
    }
  }

  // The whole's longest sequence included: parts of one data set must suit one model.
  const DatasetInfo& info() const override { return whole_->info(); }
  std::size_t size() const override { return indices_.size(); }
  Lengths lengths(std::size_t index) const override { return whole_->lengths(indices_[index]); }
  std::int32_t label(std::size_t index) const override { return whole_->label(indices_[index]); }
  Example get(std::size_t index) const override { return whole_->get(indices_.at(index)); }

 private:
  DatasetPointer whole_;
  std::vector<std::size_t> indices_;
};

class Shortened : public Dataset {
 public:
  Shortened(DatasetPointer whole, std::int64_t max_length)
      : whole_(std::move(whole)), max_length_(max_length), info_(whole_->info()) {
    info_.max_length = max_length;
  }

  const DatasetInfo& info() const override { return info_; }
  std::size_t size() const override { return whole_->size(); }
  Lengths lengths(std::size_t index) const override {
    const Lengths lengths = whole_->lengths(index);
    return {std::min(lengths.first, max_length_), std::min(lengths.second, max_length_)};
  }
  std::int32_t label(std::size_t index) const override { return whole_->label(index); }
  Example get(std::size_t index) const override {
    Example example = whole_->get(index);
    const auto most = static_cast<std::size_t>(max_length_);
    example.first.size = std::min(example.first.size, most);
    example.second.size = std::min(example.second.size, most);
    return example;
  }

 private:
  DatasetPointer whole_;
  std::int64_t max_length_;
  DatasetInfo info_;
};

// `count` of the numbers below `size`, drawn by the seed: those, then the others, both rising.
std::vector<std::size_t> drawn_first(std::size_t size, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed, RandomStream::kSplit, 0);
  shuffle(order, random);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  return order;
}

}  // namespace

DatasetPointer select_examples(DatasetPointer whole, std::vector<std::size_t> indices) {
  return std::make_shared<Subset>(std::move(whole), std::move(indices));
}

DatasetPointer slice(DatasetPointer whole, std::size_t begin, std::size_t end) {
  if (begin > end || end > whole->size()) {
    throw std::out_of_range(fmt::format("examples {} to {} of {}", begin, end, whole->size()));
  }
  std::vector<std::size_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  return select_examples(std::move(whole), std::move(indices));
}

DatasetPointer shorten(DatasetPointer whole, std::int64_t max_length) {
  if (whole->info().max_length <= max_length) return whole;
  return std::make_shared<Shortened>(std::move(whole), max_length);
}

DatasetPointer sample(DatasetPointer whole, std::size_t count, std::uint64_t seed) {
  if (whole->size() <= count) return whole;
  std::vector<std::size_t> order = drawn_first(whole->size(), count, seed);
  order.resize(count);
  return select_examples(std::move(whole), std::move(order));
}

HeldOut hold_out(const DatasetPointer& whole, double fraction, std::uint64_t seed) {
  if (!(fraction > 0.0 && fraction < 1.0)) {
    throw UserError(
        fmt::format("cannot hold out a fraction of {} of the examples; expected a number between 0 and 1", fraction));
  }
  const std::size_t size = whole->size();
  if (size < 2) throw UserError(fmt::format("cannot hold out a part of {} examples; expected at least 2", size));
  const auto wanted = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(size)));
  const std::size_t count = std::clamp<std::size_t>(wanted, 1, size - 1);

  const std::vector<std::size_t> order = drawn_first(size, count, seed);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  return {select_examples(whole, {middle, order.end()}), select_examples(whole, {order.begin(), middle})};
}

}  // namespace cosformer::data
