// One language model at work for many: prompts are read in stretches, texts written side by side, a token of each at a
// time. Requests join and leave between two tokens. Whoever asks, and whatever else is asked meanwhile, a request gets
// the tokens that Generator gives it alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/engine/decode_batch.h"
#include "serve/engine/prefix_cache.h"
#include "serve/engine/request.h"

namespace cosformer::serve {

struct EngineOptions {
  std::int64_t rows = 64;                         // texts that are written at the same time
  std::size_t queue = 256;                        // requests that wait to begin
  std::uint64_t memory = std::uint64_t{1} << 30;  // bytes of the prefix cache
  std::int64_t snapshot_every = 2048;             // tokens of a prompt between two states that are kept
};

// For whoever watches.
struct EngineFigures {
  std::size_t waiting = 0, reading = 0, writing = 0, cached_states = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0, steps = 0, cached_bytes = 0;
};

class Engine {
 public:
  Engine(Generator generator, const EngineOptions& options);
  ~Engine();  // cancels what is under way
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Throws RequestError: 400 for what the model cannot do, 429 when too many wait, 503 once it drains.
  std::shared_ptr<Ticket> submit(GenerationRequest request, Callbacks callbacks);
  // Something was cancelled.
  void wake() { changed_.notify_all(); }
  // Accepts nothing more, and returns when all that was accepted has ended.
  void drain();

  const Generator& generator() const { return generator_; }
  bool writes_together() const { return batch_.together(); }
  const EngineOptions& options() const { return options_; }
  EngineFigures figures() const;
  // What the prefix cache may take from now on.
  void set_memory(std::uint64_t bytes) { cache_memory_ = bytes; }

 private:
  struct Active;  // a request
  struct Row;     // a text that is written for it
  using ActivePointer = std::shared_ptr<Active>;

  void work();
  void admit();
  void drop_cancelled();
  void read_one_stretch();
  void begin_reading(Active& active);
  void keep_snapshot(Active& active, std::size_t before);
  void begin_writing(const ActivePointer& active);
  void step();
  void retire(const std::vector<std::int64_t>& rows);
  void end_row(Row& row);
  void end(Active& active, const RequestError* error = nullptr);
  void update_figures();

  const Generator generator_;
  const EngineOptions options_;
  const Session beginning_;
  DecodeBatch batch_;
  PrefixCache cache_;
  std::vector<Row> rows_;  // as in the batch
  std::deque<ActivePointer> reading_;
  std::size_t choices_ = 0;  // of what is read and written

  mutable std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::deque<ActivePointer> waiting_;
  std::size_t open_ = 0;  // accepted and not ended
  bool stopping_ = false, draining_ = false;
  EngineFigures figures_;
  std::atomic<std::uint64_t> cache_memory_;
  std::thread thread_;
};

}  // namespace cosformer::serve
