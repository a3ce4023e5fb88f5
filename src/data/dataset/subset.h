// A part of a data set seen as a data set: training and validation parts of one file, the first examples for a trial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset/dataset.h"

namespace cosformer::data {

using DatasetPointer = std::shared_ptr<const Dataset>;

// The examples at `indices`, in that order. Throws std::out_of_range for an index that `whole` does not have.
DatasetPointer select_examples(DatasetPointer whole, std::vector<std::size_t> indices);

// Examples begin <= index < end.
DatasetPointer slice(DatasetPointer whole, std::size_t begin, std::size_t end);

// Sequences of at most `max_length` elements, the rest of longer ones left out; the same data set when none is longer.
DatasetPointer shorten(DatasetPointer whole, std::int64_t max_length);

// `count` examples drawn by the seed, in the order of the whole; all when there are no more. count > 0.
DatasetPointer sample(DatasetPointer whole, std::size_t count, std::uint64_t seed);

struct HeldOut {
  DatasetPointer kept, held_out;
};

// Draws round(fraction * size) examples for `held_out` by the seed, at least one and not all; both parts keep the
// order of the whole. Throws UserError when the fraction is not in (0, 1) or there are fewer than two examples.
HeldOut hold_out(const DatasetPointer& whole, double fraction, std::uint64_t seed);

}  // namespace cosformer::data
