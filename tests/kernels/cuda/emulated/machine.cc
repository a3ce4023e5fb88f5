#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "include/cuda_runtime.h"
#include "races.h"
#include "scheduler.h"

#ifdef COSFORMER_EMULATED_RACES
// The device's own containers move their elements by memmove, which is watched in whoever calls it.
extern "C" const char* __tsan_default_options() {
  return "ignore_interceptors_accesses=1:halt_on_error=1";
}
#endif

namespace emulated {
namespace {

constexpr std::uint32_t kSharedBegin = 1024;  // the first address: zero is nobody's
constexpr std::size_t kVariableBytes = std::size_t{48} << 10;

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
