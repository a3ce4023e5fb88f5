#include "data/batches/batch_stream.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::data {

// Where the next batch is claimed from. Used by the prefetcher's threads one at a time.
struct BatchStream::Cursor {
  DatasetPointer dataset;
  BatchOptions options;
  std::uint64_t seed = 0, epochs = 0;
  std::vector<Lengths> lengths;
  StreamPosition position;
  std::shared_ptr<const EpochPlan> plan;  // of position.epoch; shared with the jobs under way

  void make_plan() {
    plan = std::make_shared<const EpochPlan>(plan_epoch(lengths, options, seed, position.epoch));
    if (plan->batches() == 0) {
      throw UserError(fmt::format("an epoch of {} examples has no batch; give more examples or a smaller batch size",
                                  lengths.size()));
    }
  }

  StreamPosition after(StreamPosition p) const {
    if (p.batch + 1 < plan->batches()) return {p.epoch, p.batch + 1};
    return {p.epoch + 1, 0};
  }

  Prefetcher::Job claim() {
    if (epochs != 0 && position.epoch >= epochs) return {};
    if (!plan) make_plan();
    const StreamPosition mine = position;
    position = after(mine);
    const auto mine_plan = plan;
    if (position.epoch != mine.epoch) plan.reset();  // made when it is needed, by the thread that needs it
    return [this, mine, next = position, mine_plan] {
      Batch batch = make_batch(*dataset, mine_plan->batch(static_cast<std::size_t>(mine.batch)), options);
      batch.position = mine;
      batch.next = next;
      return batch;
    };
  }
};

BatchStream::BatchStream(DatasetPointer dataset, const BatchOptions& options, std::uint64_t seed, StreamPosition start,
                         std::uint64_t epochs, const PrefetchOptions& prefetch)
    : cursor_(std::make_shared<Cursor>()) {
  cursor_->options = options;
  cursor_->seed = seed;
  cursor_->epochs = epochs;
  cursor_->lengths = lengths_of(*dataset);
  cursor_->dataset = std::move(dataset);
  cursor_->position = start;
  cursor_->make_plan();
  batches_in_first_epoch_ = cursor_->plan->batches();
  if (start.batch >= batches_in_first_epoch_) {
    throw UserError(fmt::format(
        "cannot go on at batch {} of epoch {}: the epoch has {} batches; were the data or the batch options changed?",
        start.batch, start.epoch, batches_in_first_epoch_));
  }
  prefetcher_ = std::make_unique<Prefetcher>([cursor = cursor_] { return cursor->claim(); }, prefetch);
}

BatchStream::~BatchStream() = default;

std::optional<Batch> BatchStream::next() {
  return prefetcher_->next();
}

}  // namespace cosformer::data
