// Which examples go into which batch of an epoch: a pure function of the lengths, the options, the seed and the epoch's
// number. A run that is started again asks for the same plan and goes on at its next batch.
//
// Examples are shuffled, sorted by length within pools of many batches, cut into batches, and the batches shuffled:
// the sequences of a batch are of nearly one length, so that little padding is computed, and yet batches differ from
// epoch to epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset.h"

namespace cosformer::data {

enum class Layout {
  kPadded,  // rows of one width
  kPacked,  // end to end, without padding
};

enum class Reading {
  kAsContent,  // tokens or values, as the data set says
  kTokens,
  kValues,
};

struct BatchOptions {
  std::size_t batch_size = 32;      // examples in a batch at most; 0: no limit
  std::int64_t token_budget = 0;    // elements of a batch at most, padding included; 0: no limit
  std::int64_t max_length = 0;      // longer sequences are cut; 0: none is
  std::int64_t width_multiple = 1;  // padded rows are as wide as a multiple of it
  std::int64_t fixed_width = 0;     // all padded rows have this width (and longer sequences are cut); 0: as needed
  Layout layout = Layout::kPadded;
  Reading reading = Reading::kAsContent;
  bool shuffle = true;
  bool bucket = true;             // sort by length, as above
  std::size_t pool_batches = 64;  // batches whose examples are sorted together
  bool drop_last = false;         // leave out batches of fewer than batch_size examples
};

// Throws UserError for options that contradict themselves.
void require_possible(const BatchOptions& options);

// A sequence's length after cutting.
std::int64_t kept_length(std::int64_t length, const BatchOptions& options);
// The width of rows of which the longest has the length `longest` after cutting.
std::int64_t padded_width(std::int64_t longest, const BatchOptions& options);

class EpochPlan {
 public:
  std::size_t batches() const { return ends_.size(); }
  std::span<const std::uint32_t> batch(std::size_t number) const;

  // Of all batches: elements of the sequences, and elements that are computed on.
  std::int64_t real_elements() const { return real_elements_; }
  std::int64_t computed_elements() const { return computed_elements_; }

 private:
  friend EpochPlan plan_epoch(std::span<const Lengths>, const BatchOptions&, std::uint64_t, std::uint64_t);

  std::vector<std::uint32_t> examples_;
  std::vector<std::size_t> ends_;
  std::int64_t real_elements_ = 0, computed_elements_ = 0;
};

// An example that exceeds the token budget by itself gets a batch of its own. Without shuffling neither seed nor epoch
// matters, and without bucketing either the examples keep their order.
EpochPlan plan_epoch(std::span<const Lengths> lengths, const BatchOptions& options, std::uint64_t seed,
                     std::uint64_t epoch);

// The lengths of all examples.
std::vector<Lengths> lengths_of(const Dataset& dataset);

}  // namespace cosformer::data
