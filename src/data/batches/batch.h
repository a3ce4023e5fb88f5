// A batch as plain arrays, ready to be handed to a device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batches/epoch_plan.h"
#include "data/dataset/dataset.h"

namespace cosformer::data {

// The sequences of a batch, as token ids or as values: one of the two arrays is empty.
//   kPadded: `rows` rows of `width` elements; behind each sequence kPadToken or 0.
//   kPacked: the sequences end to end; number i is at offsets[i] to offsets[i + 1]; `width` is the longest length.
struct SequenceBatch {
  Layout layout = Layout::kPadded;
  std::int64_t rows = 0, width = 0;
  std::vector<std::int32_t> tokens;
  std::vector<float> values;
  std::vector<std::int32_t> lengths;  // of each sequence
  std::vector<std::int32_t> offsets;  // kPacked: rows + 1 of them, the first 0 ("cu_seqlens"); kPadded: none
};

// A place between two batches of a run.
struct StreamPosition {
  std::uint64_t epoch = 0, batch = 0;
  bool operator==(const StreamPosition&) const = default;
};

struct Batch {
  StreamPosition position;              // of this batch
  StreamPosition next;                  // where a run that has used this batch goes on
  std::vector<std::uint32_t> examples;  // their indices in the data set
  std::vector<std::int32_t> labels;
  SequenceBatch first;
  SequenceBatch second;  // rows == 0 unless the data set has pairs
};

// Throws UserError when the options ask for a reading that the data set does not have.
Batch make_batch(const Dataset& dataset, std::span<const std::uint32_t> examples, const BatchOptions& options);

}  // namespace cosformer::data
