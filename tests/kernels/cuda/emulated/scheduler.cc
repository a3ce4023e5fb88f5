#include "scheduler.h"

#include <algorithm>
#include <cstring>

#include "races.h"
#include "stacks.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated {
namespace {

namespace context = boost::context::detail;

// The race detector knows warps and not their lanes: it has room for 256 at a time, and takes ever longer with more.
// Blocks that follow each other have other ones, so that it does not take what they do for one thread's.
#ifdef COSFORMER_EMULATED_RACES
constexpr std::size_t kWarpsInTurn = 64;
#else
constexpr std::size_t kWarpsInTurn = 1;
#endif

}  // namespace

Machine the_machine;

namespace {

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

}  // namespace

void go_to(Thread* next) {
  Thread* const from = machine().current;
  if (next == from) return;
  enter(next);
  note_left(context::jump_fcontext(next->context, from));
}

namespace {

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

}  // namespace

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

namespace {

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

}  // namespace

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

SharedMemory make_shared_memory(std::size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 1024, std::max<std::size_t>(bytes, 1)) != 0) std::abort();
  std::memset(memory, 0xff, bytes);
  return {static_cast<unsigned char*>(memory), &std::free};
}

}  // namespace emulated
