// The batches of a training run, epoch after epoch, from any place on: what a trainer reads from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/batches/batch.h"
#include "data/batches/prefetcher.h"
#include "data/dataset/subset.h"

namespace cosformer::data {

class BatchStream {
 public:
  // From `start` (a former batch's `next`) to the end of epoch number `epochs` - 1; 0: without end. The next epoch is
  // prepared while the last batches of one are used. Throws UserError for impossible options, and when an epoch would
  // have no batch.
  BatchStream(DatasetPointer dataset, const BatchOptions& options, std::uint64_t seed, StreamPosition start = {},
              std::uint64_t epochs = 0, const PrefetchOptions& prefetch = {});
  ~BatchStream();

  // Nothing at the end. For one thread.
  std::optional<Batch> next();

  // Of the epoch in which the stream began.
  std::size_t batches_in_first_epoch() const { return batches_in_first_epoch_; }

 private:
  struct Cursor;
  std::shared_ptr<Cursor> cursor_;
  std::size_t batches_in_first_epoch_ = 0;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace cosformer::data
