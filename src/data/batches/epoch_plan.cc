#include "data/batches/epoch_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"

namespace cosformer::data {
namespace {

// A batch while it is being filled: what it would cost with one example more.
class Filling {
 public:
  explicit Filling(const BatchOptions& options) : options_(options) {}

  std::int64_t cost_with(const Lengths& added) const {
    if (options_.layout == Layout::kPacked) return sum_ + added.first + added.second;
    const std::int64_t width =
        padded_width(std::max(longest_.first, added.first), options_) +
        (has_second(added) ? padded_width(std::max(longest_.second, added.second), options_) : 0);
    return width * static_cast<std::int64_t>(size_ + 1);
  }

  bool has_room_for(const Lengths& added) const {
    if (size_ == 0) return true;
    if (options_.batch_size != 0 && size_ >= options_.batch_size) return false;
    return options_.token_budget == 0 || cost_with(added) <= options_.token_budget;
  }

  void add(const Lengths& added) {
    cost_ = cost_with(added);
    longest_ = {std::max(longest_.first, added.first), std::max(longest_.second, added.second)};
    sum_ += added.first + added.second;
    ++size_;
  }

  std::size_t size() const { return size_; }
  std::int64_t cost() const { return cost_; }
  std::int64_t real() const { return sum_; }

 private:
  bool has_second(const Lengths& added) const { return longest_.second > 0 || added.second > 0; }

  const BatchOptions& options_;
  Lengths longest_;
  std::int64_t sum_ = 0, cost_ = 0;
  std::size_t size_ = 0;
};

std::size_t pool_size(std::span<const Lengths> cut, const BatchOptions& options) {
  std::size_t batch = options.batch_size != 0 ? options.batch_size : cut.size();
  if (options.token_budget != 0 && !cut.empty()) {
    std::int64_t sum = 0;
    for (const Lengths& length : cut) sum += length.first + length.second;
    const std::int64_t mean = std::max<std::int64_t>(1, sum / static_cast<std::int64_t>(cut.size()));
    batch = std::min(batch, static_cast<std::size_t>(std::max<std::int64_t>(1, options.token_budget / mean)));
  }
  const std::size_t pools = std::max<std::size_t>(1, options.pool_batches);
  return batch > cut.size() / pools ? cut.size() : std::max<std::size_t>(1, batch * pools);
}

struct PlannedBatch {
  std::size_t begin = 0, end = 0;
  std::int64_t real = 0, cost = 0;
};

}  // namespace

void require_possible(const BatchOptions& options) {
  if (options.batch_size == 0 && options.token_budget == 0) {
    throw UserError("a batch needs a limit; expected a batch size or a token budget above 0");
  }
  if (options.token_budget < 0 || options.max_length < 0 || options.fixed_width < 0 || options.width_multiple < 1) {
    throw UserError("token_budget, max_length and fixed_width must not be negative, and width_multiple at least 1");
  }
  if (options.drop_last && options.batch_size == 0) {
    throw UserError("drop_last leaves out batches smaller than the batch size; expected a batch size above 0");
  }
}

std::int64_t kept_length(std::int64_t length, const BatchOptions& options) {
  if (options.max_length > 0) length = std::min(length, options.max_length);
  if (options.fixed_width > 0 && options.layout == Layout::kPadded) length = std::min(length, options.fixed_width);
  return length;
}

std::int64_t padded_width(std::int64_t longest, const BatchOptions& options) {
  if (options.fixed_width > 0) return options.fixed_width;
  return (longest + options.width_multiple - 1) / options.width_multiple * options.width_multiple;
}

std::span<const std::uint32_t> EpochPlan::batch(std::size_t number) const {
  if (number >= ends_.size()) throw std::out_of_range(fmt::format("batch {} of {}", number, ends_.size()));
  const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
  return std::span(examples_).subspan(begin, ends_[number] - begin);
}

EpochPlan plan_epoch(std::span<const Lengths> lengths, const BatchOptions& options, std::uint64_t seed,
                     std::uint64_t epoch) {
  require_possible(options);
  if (lengths.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw UserError(fmt::format("the data has {} examples; expected fewer than 2^32", lengths.size()));
  }
  std::vector<Lengths> cut(lengths.begin(), lengths.end());
  for (Lengths& length : cut) length = {kept_length(length.first, options), kept_length(length.second, options)};

  std::vector<std::uint32_t> order(cut.size());
  std::iota(order.begin(), order.end(), 0U);
  if (options.shuffle) {
    Random random(seed, RandomStream::kExampleOrder, epoch);
    shuffle(order, random);
  }
  const std::size_t pool =
      options.bucket && options.shuffle ? pool_size(cut, options) : std::max<std::size_t>(1, cut.size());
  std::vector<PlannedBatch> batches;
  for (std::size_t begin = 0; begin < order.size(); begin += pool) {
    const std::size_t end = std::min(order.size(), begin + pool);
    if (options.bucket) {
      // Stable: equal lengths stay shuffled.
      std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
                       order.begin() + static_cast<std::ptrdiff_t>(end), [&](std::uint32_t a, std::uint32_t b) {
                         const std::int64_t total_a = cut[a].first + cut[a].second,
                                            total_b = cut[b].first + cut[b].second;
                         return total_a != total_b ? total_a < total_b : cut[a].first < cut[b].first;
                       });
    }
    for (std::size_t next = begin; next < end;) {
      Filling filling(options);
      const std::size_t first = next;
      while (next < end && filling.has_room_for(cut[order[next]])) filling.add(cut[order[next++]]);
      if (options.drop_last && filling.size() < options.batch_size) continue;
      batches.push_back({first, next, filling.real(), filling.cost()});
    }
  }
  if (options.shuffle) {
    Random random(seed, RandomStream::kBatchOrder, epoch);
    shuffle(batches, random);
  }

  EpochPlan plan;
  plan.examples_.reserve(order.size());
  for (const PlannedBatch& batch : batches) {
    plan.examples_.insert(plan.examples_.end(), order.begin() + static_cast<std::ptrdiff_t>(batch.begin),
                          order.begin() + static_cast<std::ptrdiff_t>(batch.end));
    plan.ends_.push_back(plan.examples_.size());
    plan.real_elements_ += batch.real;
    plan.computed_elements_ += batch.cost;
  }
  return plan;
}

std::vector<Lengths> lengths_of(const Dataset& dataset) {
  std::vector<Lengths> lengths(dataset.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = dataset.lengths(i);
  return lengths;
}

}  // namespace cosformer::data
