#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

#include "include/cuda_runtime.h"
#include "queue.h"
#include "races.h"
#include "stacks.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

#ifdef COSFORMER_EMULATED_RACES
// The device's own containers move their elements by memmove, which is watched in whoever calls it.
extern "C" const char* __tsan_default_options() {
  return "ignore_interceptors_accesses=1:halt_on_error=1";
}
#endif

namespace emulated {
namespace {

namespace context = boost::context::detail;

constexpr std::uint32_t kSharedBegin = 1024;  // the first address: zero is nobody's
constexpr std::size_t kVariableBytes = std::size_t{48} << 10;
constexpr int kBarriers = 16;

struct Block;

struct Thread {
  context::fcontext_t context = nullptr;
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

// The race detector knows warps and not their lanes: it has room for 256 at a time, and takes ever longer with more.
// Blocks that follow each other have other ones, so that it does not take what they do for one thread's.
#ifdef COSFORMER_EMULATED_RACES
constexpr std::size_t kWarpsInTurn = 64;
#else
constexpr std::size_t kWarpsInTurn = 1;
#endif
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
SharedMemory make_shared_memory(std::size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 1024, std::max<std::size_t>(bytes, 1)) != 0) std::abort();
  std::memset(memory, 0xff, bytes);
  return {static_cast<unsigned char*>(memory), &std::free};
}

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

Machine the_machine;
inline Machine& machine() {
  return the_machine;
}

void enter(Thread* thread) {
  Machine& m = machine();
  [[maybe_unused]] const Thread* const from = m.current;
  m.current = thread;
  if (thread->block != nullptr) {
    threadIdx = thread->index;
    blockIdx = thread->block->index;
  }
#ifdef COSFORMER_EMULATED_RACES
  if (thread->races != from->races) __tsan_switch_to_fiber(thread->races, __tsan_switch_to_fiber_no_sync);
#endif
}

// Keeps where the thread that was left goes on.
void note_left(const context::transfer_t& from) {
  static_cast<Thread*>(from.data)->context = from.fctx;
}

void go_to(Thread* next) {
  Thread* const from = machine().current;
  if (next == from) return;
  enter(next);
  note_left(context::jump_fcontext(next->context, from));
}

std::string describe_waiting() {
  Machine& m = machine();
  std::unordered_map<std::string, int> counts;
  for (const auto& block : m.blocks) {
    const std::string where = "block " + std::to_string(block->index.x) + ": ";
    for (int b = 0; b < kBarriers; ++b) {
      if (!block->barriers[b].waiting.empty() || block->barriers[b].arrived > 0) {
        counts[where + "barrier " + std::to_string(b) + ", where " + std::to_string(block->barriers[b].arrived) +
               " have arrived"] += static_cast<int>(block->barriers[b].waiting.size());
      }
    }
    for (const Warp& warp : block->warps) {
      if (warp.arrived > 0) counts[where + "an instruction of the whole warp"] += warp.arrived;
    }
  }
  for (const auto& [place, threads] : m.waiting) {
    for (const auto& [thread, what] : threads) {
      ++counts["block " + std::to_string(thread->block->index.x) + ": " + what];
    }
  }
  std::string text = "threads wait for ever:";
  int lines = 0;
  for (const auto& [where, count] : counts) {
    if (++lines > 12) break;
    text += "\n  " + std::to_string(count) + " in " + where;
  }
  return text;
}

// Whoever goes on now; the host once all is done or has failed.
Thread* next_thread() {
  Machine& m = machine();
  for (;;) {
    if (!m.failure.empty()) return &m.host;
    // The device's own actions come as late as they may, and now and then while others run.
    if (!m.device_actions.empty() && (m.ready.empty() || ++m.steps % 4096 == 0)) {
      const std::function<void()> action = std::move(m.device_actions.front());
      m.device_actions.pop_front();
      action();
      continue;
    }
    if (!m.ready.empty()) return m.ready.pop();
    if (m.alive > 0) m.failure = describe_waiting();
    return &m.host;
  }
}

void block_self() {
  go_to(next_thread());
}

// Their order should not matter, so it is another one each time.
void make_ready(std::vector<Thread*>& threads, unsigned round) {
  Machine& m = machine();
  if (round % 2 == 1) std::reverse(threads.begin(), threads.end());
  for (Thread* const thread : threads) m.ready.push(thread);
  threads.clear();
}

void end_round(Barrier& barrier) {
  barrier.arrived = 0;
  make_ready(barrier.waiting, barrier.round++);
}

void finish(Thread* self) {
  Machine& m = machine();
  for (const auto check : m.exit_checks) {
    const std::string wrong = check();
    if (!wrong.empty()) fail(wrong);
  }
  races::release(&m.ended);
  Block& block = *self->block;
  Warp& warp = block.warps[static_cast<std::size_t>(self->warp)];
  --block.alive;
  --warp.alive;
  --m.alive;
  if (warp.arrived > 0 && warp.arrived == warp.alive) fail("a lane ended while its warp has an instruction together");
  if (block.alive > 0 && block.barriers[0].arrived == block.alive) end_round(block.barriers[0]);
  if (warp.alive == 0) m.free.push_back(std::move(warp.threads));
}

void begin_thread(context::transfer_t from) {
  note_left(from);
  Machine& m = machine();
  for (;;) {
    Thread* const self = m.current;
    races::acquire(&m.launched);
    m.launch->kernel();
    finish(self);
    block_self();  // until the thread is somebody else's
  }
}

// A thread that nobody uses yet, with a stack of its own.
std::unique_ptr<Thread> make_thread() {
  unsigned char* const stack = make_stack();
  auto thread = std::make_unique<Thread>();
  // Threads do the same at the same depth: tops of their stacks that are as far apart as the stacks themselves would
  // all want the same lines of the host's caches.
  static std::size_t made = 0;
  const std::size_t unused = made++ % 256 * 17 % 256 * 256;
  thread->context = context::make_fcontext(stack + kStackBytes - unused, kStackBytes - unused, begin_thread);
  return thread;
}

std::unique_ptr<WarpThreads> take_warp_threads() {
  Machine& m = machine();
  if (m.free.size() >= kWarpsInTurn) {
    std::unique_ptr<WarpThreads> threads = std::move(m.free.front());
    m.free.pop_front();
    return threads;
  }
  auto threads = std::make_unique<WarpThreads>();
  for (auto& thread : threads->lanes) thread = make_thread();
  COSFORMER_RACES(threads->races = __tsan_create_fiber(0));
  return threads;
}

void start_block(uint3 index) {
  Machine& m = machine();
  const Launch& launch = *m.launch;
  auto block = std::make_unique<Block>();
  block->index = index;
  block->shared_bytes = launch.shared_bytes;
  block->shared = make_shared_memory(launch.shared_bytes);
  const unsigned count = launch.block.x * launch.block.y * launch.block.z;
  block->alive = static_cast<int>(count);
  block->warps.resize((count + 31) / 32);
  for (Warp& warp : block->warps) {
    warp.threads = take_warp_threads();
    warp.waiting.reserve(32);
  }
  for (unsigned i = 0; i < count; ++i) {
    Warp& warp = block->warps[i / 32];
    Thread* const thread = warp.threads->lanes[i % 32].get();
    thread->block = block.get();
    thread->index = {i % launch.block.x, i / launch.block.x % launch.block.y, i / launch.block.x / launch.block.y};
    thread->warp = static_cast<int>(i / 32);
    thread->lane = static_cast<int>(i % 32);
    thread->races = warp.threads->races;
    thread->spins = 0;
    thread->state = {};
    ++warp.alive;
    m.ready.push(thread);
  }
  m.alive += static_cast<int>(count);
  m.blocks.push_back(std::move(block));
  races::release(&m.launched);
}

Warp& own_warp() {
  Thread* const self = machine().current;
  return self->block->warps[static_cast<std::size_t>(self->warp)];
}

Barrier& own_barrier(int number) {
  if (number < 0 || number >= kBarriers) fail("barrier " + std::to_string(number) + " does not exist");
  return machine().current->block->barriers[number];
}

void come_to(int number, int threads, bool waits) {
  Barrier& barrier = own_barrier(number);
  char* const order = &barrier.order[barrier.round % 2];
  races::release(order);
  if (++barrier.arrived > threads) fail("more threads than expected at barrier " + std::to_string(number));
  const bool complete = barrier.arrived == threads;
  if (complete) end_round(barrier);
  if (!waits) return;
  if (!complete) {
    if (barrier.waiting.empty()) barrier.waiting.reserve(static_cast<std::size_t>(threads));
    barrier.waiting.push_back(machine().current);
    block_self();
  }
  races::acquire(order);
}

}  // namespace

std::string run(const Launch& launch) {
  Machine& m = machine();
#ifdef COSFORMER_EMULATED_RACES
  m.host.races = __tsan_get_current_fiber();
#endif
  m.launch = &launch;
  m.failure.clear();
  m.grid_arrived = 0;
  blockDim = {launch.block.x, launch.block.y, launch.block.z};
  gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  const auto run_ready = [&] {
    go_to(next_thread());
    m.blocks.clear();
    return m.failure.empty();
  };
  bool well = true;
  for (unsigned z = 0; well && z < launch.grid.z; ++z)
    for (unsigned y = 0; well && y < launch.grid.y; ++y)
      for (unsigned x = 0; well && x < launch.grid.x; ++x) {
        start_block({x, y, z});
        if (!launch.cooperative) well = run_ready();
      }
  if (launch.cooperative) well = run_ready();
  if (!well) {
    m.ready.clear();
    m.waiting.clear();
    m.device_actions.clear();
    m.alive = 0;
  }
  races::acquire(&m.ended);
  m.launch = nullptr;
  return m.failure;
}

void fail(const std::string& what) {
  Machine& m = machine();
  const Thread* const self = m.current;
  if (m.failure.empty()) {
    m.failure = what + " (block " + std::to_string(self->block->index.x) + ", thread " +
                std::to_string(self->warp * 32 + self->lane) + ")";
  }
  go_to(&m.host);
  std::abort();  // nobody comes back here
}

void yield() {
  Machine& m = machine();
  constexpr std::uint64_t kForEver = 20'000'000;
  if (++m.current->spins > kForEver) fail("a thread asks for ever for what nobody writes");
  m.ready.push(m.current);
  block_self();
}

unsigned char* shared_memory() {
  return machine().current->block->shared.get();
}

void* shared_variable(const void* name, std::size_t bytes, std::size_t alignment) {
  Block& block = *machine().current->block;
  void*& variable = block.variables[name];
  if (variable == nullptr) {
    if (block.variable_memory == nullptr) block.variable_memory = make_shared_memory(kVariableBytes);
    const std::size_t at = (block.variable_bytes + alignment - 1) / alignment * alignment;
    if (at + bytes > kVariableBytes) fail("variables in shared memory that take more than 48 KB");
    variable = block.variable_memory.get() + at;
    block.variable_bytes = at + bytes;
  }
  return variable;
}

std::uint32_t shared_address(const void* p) {
  const Block& block = *machine().current->block;
  const auto offset = static_cast<const unsigned char*>(p) - block.shared.get();
  if (offset < 0 || static_cast<std::size_t>(offset) > block.shared_bytes) fail("an address outside shared memory");
  return kSharedBegin + static_cast<std::uint32_t>(offset);
}

unsigned char* shared_at(std::uint32_t address, std::size_t bytes) {
  const Block& block = *machine().current->block;
  if (address < kSharedBegin || address - kSharedBegin + bytes > block.shared_bytes) {
    fail("shared memory of " + std::to_string(block.shared_bytes) + " bytes accessed at " +
         std::to_string(static_cast<std::int64_t>(address) - kSharedBegin));
  }
  if (bytes <= 16 && address % bytes != 0) fail("a misaligned address in shared memory");
  return block.shared.get() + (address - kSharedBegin);
}

void meet_all() {
  come_to(0, machine().current->block->alive, true);
}
void meet(int barrier, int threads) {
  come_to(barrier, threads, true);
}
void arrive(int barrier, int threads) {
  come_to(barrier, threads, false);
}

std::uint64_t grid_arrive() {
  Machine& m = machine();
  meet_all();
  const std::uint64_t round = m.grid_round;
  if (m.current->warp == 0 && m.current->lane == 0) {
    if (!m.launch->cooperative) fail("blocks wait for each other, but are not all on the device at once");
    races::release(&m.grid_order[round % 2]);
    if (++m.grid_arrived == static_cast<int>(m.blocks.size())) {
      m.grid_arrived = 0;
      ++m.grid_round;
      wake(&m.grid_round);
    }
  }
  meet_all();  // so that all threads of a block have the same round
  return round;
}
void grid_wait(std::uint64_t round) {
  Machine& m = machine();
  if (m.current->warp == 0 && m.current->lane == 0) {
    while (m.grid_round == round) wait_at(&m.grid_round, "the barrier of all blocks");
    races::acquire(&m.grid_order[round % 2]);
  }
  meet_all();
}

void together(Together act, void* brought) {
  Machine& m = machine();
  Thread* const self = m.current;
  Warp& warp = own_warp();
  if (warp.arrived > 0 && warp.act != act) fail("lanes of a warp are at different instructions");
  warp.act = act;
  warp.lanes.brought[static_cast<std::size_t>(self->lane)] = brought;
  if (++warp.arrived < warp.alive) {
    warp.waiting.push_back(self);
    block_self();
    return;
  }
  if (act != nullptr) act(warp.lanes);
  warp.lanes.brought = {};
  warp.arrived = 0;
  make_ready(warp.waiting, 0);
}

void sync_warp() {
  together(nullptr, nullptr);
}

void wait_at(const void* place, const char* what) {
  Machine& m = machine();
  m.waiting[place].emplace_back(m.current, what);
  block_self();
}
void wake(const void* place) {
  Machine& m = machine();
  const auto found = m.waiting.find(place);
  if (found == m.waiting.end()) return;
  for (const auto& waiting : found->second) m.ready.push(waiting.first);
  m.waiting.erase(found);
}

void later(std::function<void()> action) {
  machine().device_actions.push_back(std::move(action));
}
void at_exit(std::string (*check)()) {
  auto& checks = machine().exit_checks;
  if (std::find(checks.begin(), checks.end(), check) == checks.end()) checks.push_back(check);
}
ThreadState& thread_state() {
  return machine().current->state;
}
std::shared_ptr<void>& block_state() {
  return machine().current->block->state;
}

}  // namespace emulated
