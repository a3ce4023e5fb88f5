// Batches made on other threads and handed out in their order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/batches/batch.h"

namespace cosformer::data {

struct PrefetchOptions {
  unsigned threads = 1;
  std::size_t ahead = 4;  // batches made before they are asked for, at most
};

class Prefetcher {
 public:
  using Job = std::function<Batch()>;
  // Gives the jobs in the order of their batches, an empty one at the end. It is called by one thread at a time; jobs
  // run at the same time as others and as this.
  using NextJob = std::function<Job()>;

  // Throws UserError when threads or ahead is 0.
  Prefetcher(NextJob next_job, const PrefetchOptions& options);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  // Waits for jobs under way; batches not fetched are dropped.
  ~Prefetcher();

  // The next batch, waiting for it if need be; nothing at the end. What next_job or a job throws is thrown here in its
  // turn, after the batches before it, and again at every later call. For one thread.
  std::optional<Batch> next();

 private:
  struct Slot {
    bool filled = false;
    std::optional<Batch> batch;  // nothing: the end
    std::exception_ptr failure;
  };

  void work();
  // Waits until a slot is free; false when stopped.
  bool wait_for_room();
  void fill(std::uint64_t ticket, Slot slot);
  void stop();

  NextJob next_job_;
  std::mutex claim_mutex_;  // held while a job is claimed, so that tickets and jobs keep one order
  std::uint64_t next_ticket_ = 0;
  bool exhausted_ = false;

  std::mutex mutex_;  // guards what follows; never held while a batch is made
  std::condition_variable changed_;
  std::vector<Slot> slots_;  // the batch of ticket t waits in slot t modulo their number
  std::uint64_t delivered_ = 0;
  bool stopped_ = false;

  bool ended_ = false;  // these two are the consumer's
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  // last: joined before anything they use goes away
};

}  // namespace cosformer::data
