#include "data/batches/prefetcher.h"

#include <utility>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::data {

Prefetcher::Prefetcher(NextJob next_job, const PrefetchOptions& options) : next_job_(std::move(next_job)) {
  if (options.threads == 0 || options.ahead == 0) {
    throw UserError(fmt::format(
        "batches need at least one thread that makes them and room for one batch ahead; got {} threads and {} ahead",
        options.threads, options.ahead));
  }
  slots_.resize(options.ahead);
  try {
    for (unsigned i = 0; i < options.threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // a thread could not be started: those that run must not wait for room for ever
    stop();
    throw;
  }
}

Prefetcher::~Prefetcher() {
  stop();
}

void Prefetcher::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool Prefetcher::wait_for_room() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || next_ticket_ < delivered_ + slots_.size(); });
  return !stopped_;
}

void Prefetcher::fill(std::uint64_t ticket, Slot slot) {
  const std::lock_guard lock(mutex_);
  slot.filled = true;
  slots_[ticket % slots_.size()] = std::move(slot);
  changed_.notify_all();
}

void Prefetcher::work() {
  for (;;) {
    std::uint64_t ticket = 0;
    Slot slot;
    Job job;
    {
      const std::lock_guard claim(claim_mutex_);
      if (exhausted_ || !wait_for_room()) return;
      ticket = next_ticket_++;
      try {
        job = next_job_();
      } catch (...) {
        slot.failure = std::current_exception();
      }
      exhausted_ = !job;
    }
    if (job) {
      try {
        slot.batch = job();
      } catch (...) {
        slot.failure = std::current_exception();
      }
    }
    fill(ticket, std::move(slot));
  }
}

std::optional<Batch> Prefetcher::next() {
  if (failure_) std::rethrow_exception(failure_);
  if (ended_) return std::nullopt;
  Slot slot;
  {
    std::unique_lock lock(mutex_);
    Slot& waiting = slots_[delivered_ % slots_.size()];
    changed_.wait(lock, [&] { return waiting.filled; });
    slot = std::exchange(waiting, {});
    ++delivered_;
    changed_.notify_all();
  }
  if (slot.failure) {
    stop();
    failure_ = slot.failure;
    std::rethrow_exception(failure_);
  }
  ended_ = !slot.batch;
  return std::move(slot.batch);
}

}  // namespace cosformer::data
