// The threads of the emulated device: fibers that take turns on one thread of the host, each until it has to wait.
#pragma once

#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

#include "include/cuda_runtime.h"
#include "machine.h"
#include "queue.h"

namespace emulated {

constexpr int kBarriers = 16;

struct Block;

struct Thread {
  boost::context::detail::fcontext_t context = nullptr;
  void* races = nullptr;  // what the race detector knows its warp as
  Block* block = nullptr;
  uint3 index{};
  int warp = 0, lane = 0;
  std::uint64_t spins = 0;
  ThreadState state;
};

struct Barrier {
  int arrived = 0;
  unsigned round = 0;
  std::vector<Thread*> waiting;
  char order[2]{};  // of even and odd rounds
};

struct WarpThreads {
  std::array<std::unique_ptr<Thread>, 32> lanes;
  void* races = nullptr;
};

struct Warp {
  Lanes lanes;
  int alive = 0, arrived = 0;
  Together act = nullptr;
  std::vector<Thread*> waiting;
  std::unique_ptr<WarpThreads> threads;
};

// What begins as NaN.
using SharedMemory = std::unique_ptr<unsigned char, decltype(&std::free)>;

struct Block {
  uint3 index{};
  std::size_t shared_bytes = 0, variable_bytes = 0;  // of the variables that have been asked for
  SharedMemory shared{nullptr, &std::free}, variable_memory{nullptr, &std::free};
  std::unordered_map<const void*, void*> variables;
  int alive = 0;
  Barrier barriers[kBarriers];
  std::vector<Warp> warps;
  std::shared_ptr<void> state;
};

// Stacks are kept for the next blocks. Those of a launch that failed are left behind: what stands on them is unknown.
struct Machine {
  const Launch* launch = nullptr;
  std::deque<std::unique_ptr<WarpThreads>> free;
  Queue<Thread> ready;
  std::vector<std::unique_ptr<Block>> blocks;
  std::unordered_map<const void*, std::vector<std::pair<Thread*, const char*>>> waiting;
  std::deque<std::function<void()>> device_actions;
  std::vector<std::string (*)()> exit_checks;
  Thread host;
  Thread* current = &host;
  int alive = 0;
  std::string failure;
  std::uint64_t steps = 0;
  int grid_arrived = 0;
  std::uint64_t grid_round = 0;
  char launched = 0, ended = 0, grid_order[2]{};
};

extern Machine the_machine;
inline Machine& machine() {
  return the_machine;
}

void go_to(Thread* next);
// Whoever goes on now; the host once all is done or has failed.
Thread* next_thread();
// The current thread waits, and others go on.
void block_self();
void make_ready(std::vector<Thread*>& threads, unsigned round);
void end_round(Barrier& barrier);
SharedMemory make_shared_memory(std::size_t bytes);
void start_block(uint3 index);

}  // namespace emulated
